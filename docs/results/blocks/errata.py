"""docs/errata.md: the numerical check beside every slip, from what `benchmarks/errata.py` found."""

from typing import Any

from blocks.text import kept, short, table, versions

Found = dict[str, Any]


def power(value: float | None) -> str:
    """A large number of labels as a power of ten."""
    if value is None:
        return "no budget"
    mantissa, exponent = f"{value:.1e}".split("e+")
    return f"{mantissa}·10^{int(exponent)}"


def signed(value: float, digits: int) -> str:
    """A number with a true minus."""
    return f"{value:.{digits}f}".replace("-", "−")


def coupling(found: Found) -> str:
    """C by shift, with how much of the move each form covers."""
    rows = [
        ["C needed on u", *(f"{c:.0f}" for c in found["C"])],
        [
            "part of the move covered by the C of the first shift",
            *(f"{100 * part:.0f} %" for part in found["covered"]),
        ],
        ["move divided by κ·√excess", *(f"{ratio:.2f}" for ratio in found["square_root"])],
    ]
    told = f"*Check.* For the log loss of instance I at π*, we move π(u) by a shift; κ = {found['kappa']:.3f}:\n\n"
    return told + table(["shift", *(f"{shift:g}" for shift in found["shifts"])], rows)


def three_groups(found: Found) -> str:
    """Two mixtures, a smaller share and a smaller risk."""
    (first, second), (one, two) = found["mixtures"], found["risk_of_a"]
    return (
        f"*Check.* Three groups on orthogonal axes at radii 1, 1.5 and 2, logistic regression, exact risks: L(a) = {short(one, 4)} "
        f"at π = {_mixture(first)}, but only L(a) = {short(two, 4)} at π = {_mixture(second)}: a smaller share, yet a smaller risk."
    )


def _mixture(shares: list[float]) -> str:
    return "(" + ", ".join(short(share) for share in shares) + ")"


def twice(found: Found) -> str:
    """The excess of the fitted classifier is 2ρ."""
    return (
        f"*Check.* Two classifiers whose empirical risks err by e = {found['e']:g} in opposite directions: the fitted one has an "
        f"excess of {found['excess']:.4f}. At C = {found['C']:g}, Assumption 3 as printed allows π(z)·|ΔL| up to "
        f"{found['allowed']:g}, but the term covers only {found['term']:g}."
    )


def scored(found: Found) -> str:
    """Errors of logistic regression beside the fewest."""
    one, two = found["instance_I"], found["crossed"]
    return (
        "*Check.* We compare the errors of logistic regression at equal shares with those of the linear rule that has the fewest. On instance I, whose symmetry makes them "
        f"nearly agree, they are {one['logistic']:.5f} and {one['least']:.5f}; with u at (∓1, 0) and v at (±4, −3) they are {two['logistic']:.3f} and "
        f"{two['least']:.3f}."
    )


def counts(found: Found) -> str:
    """N_A in its three forms."""
    return (
        f"*Check.* For n = {found['n']:,}, π_min = {found['pi_min']:g} and A = {found['A']:g}, Lemma 2 allows t₀ = {found['t0']:,.0f} with a "
        f"share of A, which is {found['allowed']:.0f} examples. Theorem 1 relies on {found['theorem']:.0f}, its proof on "
        f"{found['proof']:,.0f}."
    )


def forced(found: Found) -> str:
    """When forced rounds are over."""
    rows = [[f"{row['xi']:g}", f"{row['printed']}", f"{row['first']:,}"] for row in found["rows"]]
    told = f"*Check.* Trying every n gives the first one with π_min·n ≥ n^ξ, for π_min = {found['pi_min']:g}:\n\n"
    return told + table(["ξ", "1/π_min²", "first n"], rows)


def signs(found: Found) -> str:
    """The sum in the proof of Lemma 2."""
    return (
        f"*Check.* For π* = (.2, .3, .5), A = .1 and z₀ the last group, the sum is {found['direct']:.4f}. The formula with a minus gives "
        f"{found['right']:.4f}, the printed one {found['printed']:.4f}."
    )


def decision(found: Found) -> str:
    """What the round before adds."""
    rows = [
        [f"{row['t']:,}", f"{row['share']:.5f}", f"{row['before']:.5f}", f"{row['extra']:.5f}", f"{row['bound']:.5f}"]
        for row in found["rows"]
    ]
    header = [
        "t",
        "share with the round's example",
        "share at the decision",
        "risk of u above M*",
        "(1−π*)/(t−1) × slope",
    ]
    return "*Check.* On instance I, let u end just above its fair share of .2:\n\n" + table(header, rows)


def ties(found: Found) -> str:
    """Worst risks when two groups are tied."""
    worst = {name: max(found[name]) for name in ("before", "one", "both")}
    return (
        f"*Check.* Take the three groups of point 2, with a and b tied at {worst['before']:.4f}. Moving a hundredth of the mixture from c to a "
        f"gives a worst risk of {worst['one']:.4f}; moving it to both gives {worst['both']:.4f}."
    )


def two_terms(found: Found) -> str:
    """B_0' with and without 2e."""
    rows = [[f"{row['C']:g}", f"{row['printed']:.4f}", f"{row['right']:.4f}"] for row in found["rows"]]
    told = f"*Check.* On instance I with ξ = {found['xi']:g} and {power(found['labels'])} labels, 2e = {found['rows'][0]['least']:.4f}:\n\n"
    return told + table(["C", "B₀' as printed", "B₀' with 2e"], rows)


def vapnik(found: Found) -> str:
    """What the printed bound spends, and what each asks for."""
    need = found["examples_to_0.1"]
    return (
        f"*Check.* Put into 4·(2eN/d)^d·exp(−N·e²/8), the printed form spends {found['spent']['printed']:.2f} times the share of δ that it "
        f"may spend, and the two-sided form {found['spent']['right']:.2f} times. To reach e ≤ .1 (d = 3, two groups) they need {need['printed']:,} and "
        f"{need['right']:,} examples; with a 4 in front of the root it would be {need['four_in_front']:,}. With α = .8 the Rademacher "
        f"form falls like N^−{found['rate_of_alpha_0.8']:.2f} between 10^10 and 10^12."
    )


def explored(found: Found) -> str:
    """ε between the two limits."""
    one, two = found["0.3"], found["0.5"]
    return (
        f"*Check.* On instance I, m·π_min = {found['m_pi_min']:g} and π_min/m = {found['pi_min_over_m']:g}. After {found['labels']:,} labels, in "
        f"{found['trials']} trials with ε = .3, the mean share of u is {short(one['share'])} and the excess is {one['excess']:.4f} and "
        f"still falling. With ε = .5 they are {short(two['share'])} and {two['excess']:.4f}, which is at the floor."
    )


def late_draws(found: Found) -> str:
    """How often the last greedy choice was at or below the fair share."""
    one = found["0.3"]
    return (
        f"*Check.* In the runs of point 13 with ε = .3, u ends above its fair share at {one['budgets_above']:,} budgets. In "
        f"{one['below_at_t0']} of these cases its share at the last greedy choice of u was at or below the fair one. That is rare, but the proof rules it out."
    )


def exploring_rounds(found: Found) -> str:
    """Exploring rounds by simulation."""
    return (
        f"*Check.* For t = {found['t']:,}, ε = {found['epsilon']:g} and m = 2, t/ε − b_t = {found['printed']:,.0f} is more than the number of rounds. "
        f"(ε/m)·t − b_t is {found['right']:.0f}, and the smallest of 20,000 simulated counts is {found['simulated_least']}."
    )


def condition(found: Found) -> str:
    """The right side that is negative."""
    worst = ", ".join(f"{signed(row['at_most'], 2)} for m = {row['groups']}" for row in found["rows"])
    return (
        f"*Check.* The printed right side is below {worst}, while log t/t ≥ 0. The corrected condition first holds at "
        f"n = {found['first']:,} for q = {found['q']:g}, β = {found['beta']:g} and δ = .05."
    )


def slack(found: Found) -> str:
    """N_q for β above 1."""
    rows = [[f"{row['beta']:g}", signed(row["examples"], 1)] for row in found["rows"]]
    told = (
        f"*Check.* For ε = {found['epsilon']:g}, m = 2, π_min = {found['pi_min']:g} and n = {found['n']:,} the printed limit is "
        f"β < {found['largest']:g}:\n\n"
    )
    return told + table(["β", "N_q"], rows)


def floor(found: Found) -> str:
    """The floor of Proposition 2."""
    return f"*Check.* On instance I with ε = .5 the printed floor is {signed(found['printed'], 4)}; that of the worst group is {found['right']:.5f}."


def tighter(found: Found) -> str:
    """A_opt beside ε-greedy."""
    rows = [
        [
            f"{row['xi']:g}",
            *(f"{row[side]['value']:.2f}" for side in ("optimistic", "exploring")),
            *(power(row[side]["labels"]) for side in ("optimistic", "exploring")),
        ]
        for row in found["rows"]
    ]
    first = found["rows"][0]
    told = (
        "*Check.* On instance I with C = 1, VC dimension 3 and γ computed; ε-greedy has the ε that needs the fewest labels, "
        f"{first['epsilon']:.2f}:\n\n"
    )
    head = [
        f"bound at {power(first['budget'])} labels, A_opt",
        "ε-greedy",
        f"labels to a promise of {first['target']:g}, A_opt",
        "ε-greedy",
    ]
    half, near = found["slow"]["0.5"], found["slow"]["0.99"]
    return (
        told
        + table(["ξ", *head], rows)
        + (
            f"\n\nWith e = N^−0.02/10, five groups, π_min = 0.2, C = 10 and ε = 0.97 at {power(first['budget'])} labels, the bound is {half['optimistic']:.1f} for A_opt at "
            f"A = π_min/2, {near['optimistic']:.1f} at A = 0.99·π_min, and {half['exploring']:.1f} for ε-greedy."
        )
    )


def greedy(found: Found) -> str:
    """Abernethy et al.'s bound after runs of Greedy."""
    rows = []
    for rule in ("greedy", "optimistic:c0=0.1"):
        one = found[rule]
        numbers = [
            f"{one['fewest']}",
            f"{one['median']:.0f}",
            f"{one['bound_median']:.2f}",
            f"{one['bound_worst']:.2f}",
        ]
        rows.append([f"`{rule}`", *numbers, f"{100 * one['above_1']:.0f} %"])
    told = f"*Check.* On instance I, after {found['labels']:,} labels, the smaller of the two groups' counts over {found['trials']} trials:\n\n"
    head = ["rule", "fewest", "median", "bound at the median", "bound at the fewest", "runs with a bound above 1"]
    return told + table(head, rows)


def divergence(found: Found) -> str:
    """KL per label, integrated."""
    return (
        f"*Check.* For r = {found['r']:g} and r' = {found['other']:g}, integration over the plane gives {found['integrated']:.4f}. The printed formula gives "
        f"{found['printed']:.4f}, and (r'−r)² is {found['right']:.4f}."
    )


def gap_lemma(found: Found) -> str:
    """The excess at equal shares over the lemma's claim."""
    by_r: dict[float, list[str]] = {}
    for row in found["general"]:
        by_r.setdefault(row["r"], []).append(f"{row['ratio']:.2f}")
    times = sorted({row["times"] for row in found["general"]})
    rows = [[f"{r:g}", *ratios] for r, ratios in by_r.items()]
    told = "*Check.* The excess at equal shares divided by what the lemma claims. Below 1 the lemma fails:\n\n"
    shown = table(["r", *(f"r' = {k:g}·r" for k in times)], rows)
    return (
        told
        + shown
        + (
            f"\n\nFor the pair r' = r + 1/√(2n) the smallest of {found['pairs']} ratios (n from 2 to 10,000, r up to 4) is "
            f"{found['least_for_the_pair']:.2f}."
        )
    )


def fair_mixture(found: Found) -> str:
    """The fair mixture of instance I."""
    low, high = found["risks"]["0.23"]
    return f"*Check.* The risks of instance I cross at π(u) = {found['crossing']:.6f}; at .23 they are {low:.4f} on u and {high:.4f} on v."


def steering(found: Found) -> str:
    """The bias of the validation set that steers."""
    parts = [
        f"{signed(found[rule]['bias_u']['mean'], 4)} for {name}"
        for rule, name in (("optimistic:c0=0.1", "A_opt"), ("greedy", "Greedy"), ("uniform", "Uniform"))
    ]
    return f"*Check.* On instance I at round {found['round']}, over {found['trials']} trials, the mean of score − true risk on u is {', '.join(parts)}."


def blocks() -> dict[str, str]:
    """The checks by name, and how they were made."""
    found = kept("errata.json")
    parts = (
        coupling, three_groups, twice, scored, counts, forced, signs, decision, ties, two_terms, vapnik, explored, greedy,
        exploring_rounds, condition, slack, floor, tighter, divergence, gap_lemma, fair_mixture,
    )  # fmt: skip
    done = {f"errata-{part.__name__.replace('_', '-')}": part(found[part.__name__]) for part in parts}
    done["errata-late-draws"] = late_draws(found["explored"])
    done["errata-steering"] = steering(kept("theory.json")["steering"])
    done["errata-made"] = f"`{found['command']}`, {found['date']}, {versions(found['versions'])}."
    return done
