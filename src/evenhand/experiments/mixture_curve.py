"""fig-mixture-curve: accuracy of u, v and the worse of them against the share of u in the training set."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.arrays import Floats
from evenhand.experiments.base import Experiment, Findings, Number, Runs, measured
from evenhand.experiments.drawing import panels
from evenhand.experiments.measures import mean_number
from evenhand.experiments.verdicts import Above, Test
from evenhand.learners import Logistic
from evenhand.notation import JsonObject
from evenhand.plotting.panels import COLOURS
from evenhand.simulation.metrics import worst
from evenhand.sources.synthetic.model1 import SyntheticModel1

VALUES = {"paper": 1001, "quick": 101}
EXAMPLES = {"paper": 10_000, "quick": 2_000}
HARDER = Test(
    "The harder group needs more examples: v in I, u in II",
    (Above("share of v at the peak, instance I", 0.5), Above("share of u at the peak, instance II", 0.5)),
    exact=True,
)
READINGS = {"paper": 200, "quick": 5}
READ_EXAMPLES = 1000
"""For training and, of each group, for testing. The paper gives neither; its next figure has n = 1000."""
READ = 0.23
"""Where the paper reads the peak of one trained curve of instance I."""
# a reading as high as 0.23, or as low, in more than one curve of twenty: then the plot is one like any other
PEAK = Test(
    "One trained curve of instance I can be read as peaking at about 0.23",
    (
        Above("share of readings at 0.23 or above", 0.05),
        Above("share of readings at 0.23 or below", 0.05),
    ),
)


def curve(model: SyntheticModel1, values: int, examples: int) -> pd.DataFrame:
    """Accuracy of the best rule for each mixture, and of one trained on a sample, both exact."""
    share = np.linspace(0, 1, values)
    exact = 1 - model.mixture_risk(np.column_stack([share, 1 - share]))
    trained = trained_curve(model, share, examples)
    columns: JsonObject = {"source": model.name, "share_of_u": share}
    for how, accuracy in (("exact", exact), ("trained", trained)):
        columns |= {f"u_{how}": accuracy[:, 0], f"v_{how}": accuracy[:, 1], f"worst_{how}": worst(accuracy)}
    return pd.DataFrame(columns)


def trained_curve(model: SyntheticModel1, share: Floats, examples: int) -> Floats:
    """Exact accuracy of both groups for every share of u, of a rule trained on that mixture of one sample."""
    stream = model.open(0, [0])
    # the same examples for every mixture, so that the curve shows the mixture and not the draw
    draws = [stream.draw(np.array([z]), np.array([examples])) for z in range(2)]
    trained, rule = [], None
    for pi in share:
        n = round(pi * examples)
        X = np.vstack([draws[0].X[:n], draws[1].X[: examples - n]])
        y = np.concatenate([draws[0].y[:n], draws[1].y[: examples - n]])
        # each fit starts from the rule of the neighbouring mixture, near its optimum: there are a thousand
        rule = Logistic().fit(X, y, previous=rule)
        trained.append(model.linear_accuracies(rule.coef_[0], rule.intercept_[0]))
    return np.array(trained)


def reading(model: SyntheticModel1, values: int, trial: int) -> float:
    """Where the test accuracy of the worse group peaks: every mixture has a training set of its own, one test set is for all."""
    share = np.linspace(0, 1, values)
    # the peak is never further out, and most of the time of a curve would go there
    share = share[(share >= 0.05) & (share <= 0.45)]
    of_u = np.round(share * READ_EXAMPLES).astype(int)
    sizes = np.column_stack([of_u, READ_EXAMPLES - of_u])
    stream = model.open(0, [trial])
    test = [stream.draw(np.array([z]), np.array([READ_EXAMPLES])) for z in range(2)]
    drawn = [stream.draw(np.array([z]), sizes[:, [z]].sum(axis=0)) for z in range(2)]
    ends, accuracy, rule = sizes.cumsum(axis=0), [], None
    for place, size in zip(ends, sizes, strict=True):
        own = [slice(end - n, end) for end, n in zip(place, size, strict=True)]
        X = np.vstack([one.X[part] for one, part in zip(drawn, own, strict=True)])
        y = np.concatenate([one.y[part] for one, part in zip(drawn, own, strict=True)])
        rule = Logistic().fit(X, y, previous=rule)
        accuracy.append(min(float(np.mean(rule.predict(one.X) == one.y)) for one in test))
    return float(share[np.argmax(accuracy)])


def readings(scale: str) -> Floats:
    """Readings of instance I, each of a figure of its own."""
    model = SyntheticModel1.instance("I")
    return np.array([reading(model, VALUES[scale], trial) for trial in range(READINGS[scale])])


def find(runs: Runs, scale: str) -> Findings:
    """Draw both instances and compare the best mixture with the exact one."""
    figure, axes = panels(["instance I", "instance II"], "share of u in the training set", "test accuracy")
    tables, numbers, best = [], [], {}
    for ax, which in zip(axes, ("I", "II"), strict=True):
        model = SyntheticModel1.instance(which)
        table = curve(model, VALUES[scale], EXAMPLES[scale])
        for name, colour in zip(("u", "v", "worst"), (COLOURS[1], COLOURS[0], "#000000"), strict=True):
            ax.plot(table["share_of_u"], table[f"{name}_trained"], ".", color=colour, ms=2, alpha=0.4, rasterized=True)
            ax.plot(table["share_of_u"], table[f"{name}_exact"], color=colour, label=name, linewidth=1.6)
        best[which] = float(model.pi_star()[0])
        ax.axvline(best[which], color="#444444", linewidth=1, linestyle="--", label=f"π* = {best[which]:.2f}")
        ax.plot([], [], ".", color="#888888", ms=4, label="trained on a sample")
        ax.set_ylim(0.5, 1)
        ax.legend(frameon=False, fontsize=9, loc="lower center")
        trained = float(table["share_of_u"].to_numpy()[table["worst_trained"].to_numpy().argmax()])
        paper = READ if which == "I" else None
        numbers += [
            Number(f"best share of u, instance {which}, exact", best[which], paper=paper),
            Number(f"best share of u, instance {which}, trained on {EXAMPLES[scale]:,} examples", trained, paper=paper),
            Number(f"worst-group accuracy there, instance {which}", 1 - float(model.worst_risk(model.pi_star()))),
        ]
        tables.append(table)
    read = readings(scale)
    numbers.append(mean_number(f"peak of a trained curve, instance I, {len(read)} curves", read, READ))
    found = {
        HARDER.claim: measured(
            {"share of v at the peak, instance I": 1 - best["I"], "share of u at the peak, instance II": best["II"]}
        ),
        PEAK.claim: measured(
            {"share of readings at 0.23 or above": read >= READ, "share of readings at 0.23 or below": read <= READ},
            note=f"{len(read)} curves, peaks {read.mean():.3f} ± {read.std(ddof=1):.3f}; π*(u) is {best['I']:g}",
        ),
    }
    return Findings(figure, pd.concat(tables, ignore_index=True), numbers, found)


EXPERIMENT = Experiment(
    id="fig-mixture-curve",
    title="Accuracy against the share of u, SyntheticModel1",
    paper="The worse group's accuracy peaks at about 0.23 of u in instance I, on the other side in instance II.",
    studies={},
    find=find,
    tests=(HARDER, PEAK),
    note="Lines: the best rule for each mixture, exact. Dots: a rule trained on a sample, judged exactly.",
)
