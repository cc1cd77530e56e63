"""fig-adult: accuracy of Adult's worst group against the labels spent."""

from __future__ import annotations

from evenhand.experiments.base import Experiment, Findings, Needs, Number, Runs
from evenhand.experiments.drawing import PAIRED, draw_ahead, draw_worst, panels
from evenhand.experiments.measures import ceilings, curves, gains, gains_between, half_gap, mean_number, worst
from evenhand.experiments.study import Study, open_study_source
from evenhand.experiments.verdicts import Above, Test, Within

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "Greedy": "greedy",
    "Uniform": "uniform",
    "Uncurated": "uncurated",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
}
STUDY = Study("adult", RULES, budget=8000, trials=200, quick={"budget": 800, "trials": 10}, evaluate=80, block=5)
PAPER = {"A_opt": (0.801, 0.001), "Greedy": (0.800, 0.002), "Uniform": (0.798, 0.002), "Uncurated": (0.797, 0.003)}
SMALL = 500
NEEDS = Needs(paper=True)
ADAPTIVE = ("A_opt", "Greedy")
LATE = {
    rule: Test(f"{rule} beats Uniform on the worst group", (Above(f"{rule} − Uniform at the end"),))
    for rule in ADAPTIVE
}
EARLY = {
    rule: Test(
        f"{rule} is ahead of Uniform at small budgets", (Above(f"{rule} − Uniform, first eighth of the labels"),)
    )
    for rule in ADAPTIVE
}
SMALL_BUDGETS = Test(
    "Adult's advantage is larger at small budgets",
    (Above("A_opt − Uniform, first eighth of the labels less second half"),),
)
# a margin as large as the differences that are claimed would call everything comparable
COMPARABLE = Test("A_opt and ε-greedy are comparable", (Within("A_opt − ε-greedy at the end", half_gap(PAPER)),))
UNCURATED = Test("Uncurated is comparable to A_opt", (Within("A_opt − Uncurated at the end", half_gap(PAPER)),))


def find(runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy, how much the rules differ early and late, and what no rule can beat."""
    found = runs["adult"]
    figure, (ax, ahead) = panels(["Adult", PAIRED], "labels", "test accuracy of the worst group", sharey=False)
    # trained on all of Adult, white men are the worst-off group: no rule can beat what they reach
    top = ceilings(open_study_source(STUDY))["white men"]
    ax.axhline(top[1], color="#444444", linewidth=1, linestyle="--", label="trained on all of Adult")
    draw_worst(ax, found)
    ax.set_ylim(0.68, 0.82)
    draw_ahead(ahead, found, "Uniform")
    budget, full = int(found["A_opt"].labels[-1].max()), scale == "paper"
    numbers = [
        mean_number(f"{label}, {budget:,} labels", worst(record), *(PAPER.get(label, ()) if full else ()))
        for label, record in found.items()
    ]
    numbers += [mean_number(f"{label}, {SMALL} labels", worst(record, SMALL)) for label, record in found.items()]
    numbers += [
        Number("ceiling: white men, trained on all white men", top[0], paper=0.805),
        Number("ceiling: white men, trained on everybody", top[1]),
    ]
    early = {rule: gains_between(found, rule, "Uniform", 0, budget / 8) for rule in ADAPTIVE}
    late = gains_between(found, "A_opt", "Uniform", budget / 2, budget)
    values = {LATE[rule]: gains(found, rule, "Uniform") for rule in ADAPTIVE}
    values |= {EARLY[rule]: early[rule] for rule in ADAPTIVE}
    values |= {
        SMALL_BUDGETS: early["A_opt"] - late,
        COMPARABLE: gains(found, "A_opt", "ε-greedy"),
        UNCURATED: gains(found, "A_opt", "Uncurated"),
    }
    by_claim = {test.claim: NEEDS.measured({test.comparisons[0].name: own}, scale) for test, own in values.items()}
    return Findings(figure, curves(found, "Uniform", source="adult"), numbers, by_claim)


EXPERIMENT = Experiment(
    id="fig-adult",
    title="Worst group against budget, Adult",
    paper="All rules approach 80.5 %; the adaptive ones are well ahead of Uniform at small budgets, Uncurated is comparable to them.",
    studies={"adult": STUDY},
    find=find,
    tests=(*LATE.values(), *EARLY.values(), SMALL_BUDGETS, COMPARABLE, UNCURATED),
    needs=NEEDS,
    note="The paper has 10 trials and gives no budget; with 8,000 labels Uniform does not yet use up the 2,129 non-white women.",
)
