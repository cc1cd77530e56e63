"""docs/theory.md and docs/certificates.md: what `benchmarks/theory.py` found."""

from typing import Any

from blocks.errata import power
from blocks.text import kept, short, table, versions

Found = dict[str, Any]


def made(found: Found) -> str:
    """Where a part comes from."""
    run = found["run"]
    return f"\n\n(`{run['command']}`, {run['date']}, {versions(run['versions'])}.)"


def coupling(found: Found) -> str:
    """The C that ever smaller shifts need."""
    row = [f"{on_u:.0f}" for on_u, _ in found["ratio"]]
    return table(["shift", *(f"{shift:g}" for shift in found["shifts"])], [["C on u", *row]])


def pairs(found: Found) -> str:
    """The lower bound beside simulations of its pair."""
    rows = [
        [f"{row['labels']:,}", f"{row['bound']:.5f}", f"{row['u_harder']:.4f}", f"{row['v_harder']:.4f}"]
        for row in found["rows"]
    ]
    told = f"A_opt, r = {found['r']:g}, {found['trials']} trials each:\n\n"
    return told + table(["labels", "bound", "simulated, u harder", "v harder"], rows) + made(found)


def excess(found: Found) -> str:
    """Mean excess risk by labels, with the slope or the floor."""
    rows = []
    for rule in ("optimistic:c0=0.1", "epsilon-greedy:epsilon=0.1", "epsilon-greedy:epsilon=0.5"):
        one = found[rule]
        slope = "{} [{}, {}]".format(
            *(f"{one['slope'][key]:.2f}".replace("-", "−") for key in ("value", "low", "high"))
        )
        if rule.endswith("0.5"):
            slope = f"levels off at {short(found['floor']['last'], 4)}"
        rows.append([f"`{rule}`", f"{one['trials']}", *(short(value, 4) for value in one["mean"]), slope])
    header = ["labels", "trials", *(f"{labels:,}" for labels in found["budgets"]), "slope of log–log"]
    return table(header, rows) + made(found)


def floor(found: Found) -> str:
    """Where over-exploring ends on instance I."""
    one = found["floor"]
    return (
        f"On instance I with ε = 0.5, the excess 0-1 risk stays above {one['from_tau0']:.5f} from τ₀ = "
        f"{one['tau0_rounds']:,} rounds on, and levels off at {one['last']:.5f}."
    )


def steering(found: Found) -> str:
    """How wrong a naive interval on the steering validation set is."""
    rows = []
    for rule in ("optimistic:c0=0.1", "greedy", "uniform"):
        one = found[rule]
        wrong = [f"{100 * one['naive_wrong_once'][z]:.0f} %" for z in ("u", "v")]
        bias = [f"{one['bias_u'][key]:.3f}".replace("-", "−") for key in ("mean", "low", "high")]
        rows.append([f"`{rule}`", *wrong, "{} [{}, {}]".format(*bias), f"{one['risk_u']:.3f}"])
    header = ["rule", "wrong at least once, u", "v", f"score − risk on u at round {found['round']}", "true risk of u"]
    return table(header, rows) + made(found)


def widths(found: Found) -> str:
    """Width of the error-rate sequence over Wilson's."""
    by_error: dict[float, dict[int, float]] = {}
    for row in found["rows"]:
        by_error.setdefault(row["error"], {})[row["n"]] = row["sequence"]
    sizes = [f"{n:,}" for n in next(iter(by_error.values()))]
    rows = [[f"{error:g}", *(f"{ratio:.2f}" for ratio in by_n.values())] for error, by_n in by_error.items()]
    return table(["error rate", f"n = {sizes[0]}", *sizes[1:]], rows)


def coverage() -> str:
    """Runs with a miss, from the soak tests."""
    found = kept("soak.json")
    misses = {(test["kind"], test["p"]): test["misses"] for test in found["coverage"]}
    kinds = {"sequence_misses": "error-rate sequence", "running_misses": "running"}
    kinds |= {"between_misses": "the same, losses between 0 and 1 (beta-distributed)"}
    rows = [[f"{p:g}", *(f"{misses[kind, p]}" for kind in kinds)] for p in sorted({p for _, p in misses})]
    told = f"\n\n(`{found['command']}`, {found['date']}; a short form runs in `make test`.)"
    return table(["error rate", *kinds.values()], rows) + told


def forms(found: Found) -> str:
    """What is promised on instance I in each form of Assumption 3."""
    rows = []
    for row in found["forms"]:
        term = f"κ = {row['kappa']:.3f}" if "kappa" in row else f"C = {row['C']:.3g}"
        term += f" from {row['resolution']:.2g} up" if "resolution" in row else ""
        held = "never" if row["from"] is None else power(row["from"])
        rows.append([f"{row['form']}: {term}", f"{row['value']:.3g}", f"{row['far']:.2g}", held, f"{row['rate']:g}"])
    head = ["Assumption 3", "bound at 1,000 labels", "at 10^12", "holds and is below 1 from", "rate"]
    return table(head, rows) + made(found)


def promised_rule(found: Found) -> str:
    """What the rule with a promise does."""
    one = found["promised_rule"]
    shares = " and ".join(f"{short(share)} after {int(n):,} labels" for n, share in one["share_of_u"].items())
    return (
        "For budgets that anybody can pay, the coupling term outweighs everything else. It favours the group with the smallest share, so the rule "
        f"comes close to uniform sampling: on instance I, `{one['rule']}` gives u a share of {shares}; the fair share is .2 (mean of "
        f"{one['trials']} trials)."
    )


def two_terms(found: Found) -> str:
    """B_0' and labels without the coupling term, by ξ."""
    rows = [
        [f"{row['xi']:g}", f"{row['first_phase']:.2g}", power(row["labels"]), power(row["coupled"])]
        for row in found["two_terms"]
    ]
    return table(["ξ", "B₀' at 10^12 labels", "labels to a promise of 0.05", "with the coupling term"], rows)


def exploring(found: Found) -> str:
    """ε-greedy by uniform exploration and by the population."""
    one = found["exploring"]
    shares = " and ".join(short(share, 1) for share in one["shares"])
    return (
        f"On instance I with C = 1, ε = 0.3 and 10^12 labels, the bound is {one['uniform']:.3f} with uniform exploration and "
        f"{one['population']:.3f} with population shares of {shares}."
    )


def orders(found: Found) -> str:
    """Remark 1 as numbers."""
    first = found["forms"][0]
    values = ", ".join(f"{row['value']:.2f} for π_min = {row['pi_min']:g}" for row in found["orders"])
    return (
        f"At 1,000 labels, with two groups, d = 3 and C = 1, the order is {values}. On instance I the promise is {first['hidden']:.0f} times its order "
        "at that budget: this factor is what the constants and logarithms add up to."
    )


def compared(found: Found) -> str:
    """Who needs fewer labels."""
    one = found["compared"]
    mine, other = one["optimistic"], one["exploring"]
    return (
        f"On instance I (C = 1, γ computed, ξ = 0.5), the bound at 10^12 labels is {mine['value']:.4f} for A_opt and {other['value']:.4f} for ε-greedy with "
        f"ε = {one['epsilon']:.2f}. But A_opt's bound holds only from {power(mine['holds_from'])} labels on, ε-greedy's from "
        f"{power(other['holds_from'])}. A promise of {one['target']:g} therefore takes {power(mine['labels'])} labels with A_opt and {power(other['labels'])} with ε-greedy."
    )


def probe(found: Found) -> str:
    """Assumption 2 in data."""
    rows = []
    for name in ("instance I", "three orthogonal groups", "Adult"):
        one = found[name]
        m = len(one["groups"])
        second = f"{len(one['second_fails'])} of {m * (m - 1)} pairs fail"
        rows.append([f"{name}, {one['examples']:,} examples, {one['risk']}", second])
    return table(["data", "Assumption 2"], rows) + made(found)


def front(found: Found) -> str:
    """The fair mixtures on the fronts."""
    lines = []
    for name in ("instance I", "Adult"):
        one = found[name]
        shares = ", ".join(f"{g} {short(p, 2)}" for g, p in zip(one["groups"], one["mixture"], strict=True))
        risks = ", ".join(f"{g} {short(r)}" for g, r in zip(one["groups"], one["risks"], strict=True))
        lines.append(
            f"**{name}.** Of {one['tried']} mixtures tried, the fairest is {shares}. The errors there are {risks}; at equal shares the worst error is "
            f"{short(max(one['equal_shares']))}. No point is dominated by more than {one['most_dominated']:.4f}, and no f_π is further "
            f"than {one['most_slack']:.4f} from the best for its own mixture. Both come from the noise of the test half, and from the fact that the learner "
            "does not minimise errors."
        )
    return "\n\n".join(lines) + made(found)


def blocks() -> dict[str, str]:
    """Tables of both pages."""
    found = kept("theory.json")
    parts = {"coupling": coupling, "pairs": pairs, "excess": excess, "steering": steering, "widths": widths}
    done = {f"theory-{name}": part(found[name]) for name, part in parts.items()}
    done |= {f"theory-{part.__name__}": part(found[part.__name__]) for part in (probe, front)}
    done |= {
        f"theory-plan-{p.__name__}": p(found["plan"])
        for p in (forms, promised_rule, two_terms, exploring, orders, compared)
    }
    done["theory-floor"] = floor(found["excess"])
    done["theory-kappa"] = f"On instance I at π*, κ = {found['coupling']['kappa']:.3f}."
    return done | {"coverage": coverage()}
