"""docs/theory.md and docs/certificates.md: what `benchmarks/theory.py` found."""

from typing import Any

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
            slope = f"flattens at {short(found['floor']['last'], 4)}"
        rows.append([f"`{rule}`", f"{one['trials']}", *(short(value, 4) for value in one["mean"]), slope])
    header = ["labels", "trials", *(f"{labels:,}" for labels in found["budgets"]), "slope of log–log"]
    return table(header, rows) + made(found)


def floor(found: Found) -> str:
    """Where over-exploring ends on instance I."""
    one = found["floor"]
    return (
        f"On instance I with ε = 0.5 the excess 0-1 risk is above {one['from_tau0']:.5f} from τ₀ = "
        f"{one['tau0_rounds']:,} rounds and flattens at {one['last']:.5f}."
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
    kinds |= {"bernstein_misses": "empirical Bernstein (beta-distributed losses)"}
    rows = [[f"{p:g}", *(f"{misses[kind, p]}" for kind in kinds)] for p in sorted({p for _, p in misses})]
    told = (
        f"\n\n(`{found.get('coverage_command', found['command'])}`, {found['date']}; a short form runs in `make test`.)"
    )
    return table(["error rate", *kinds.values()], rows) + told


def blocks() -> dict[str, str]:
    """Tables of both pages."""
    found = kept("../assets/theory.json")
    parts = {"coupling": coupling, "pairs": pairs, "excess": excess, "steering": steering, "widths": widths}
    done = {f"theory-{name}": part(found[name]) for name, part in parts.items()}
    done["theory-floor"] = floor(found["excess"])
    done["theory-kappa"] = f"On instance I at π*, κ = {found['coupling']['kappa']:.3f}."
    return done | {"coverage": coverage()}
