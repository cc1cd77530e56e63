"""What `evenhand plan` found, in sentences."""

from __future__ import annotations

from typing import Any

__all__ = ["sentences"]


def sentences(found: dict[str, Any]) -> list[str]:
    """The promise and the budget, the figures of the paper's remarks, the lower bound, and what is assumed."""
    lines = _exploring(found, "exploring uniformly") if "exploration" in found else _promise(found)
    if population := found.get("population"):
        lines += _exploring(population, "exploring by the population's shares")
    lines += _remarks(found)
    if lower := found.get("lower_bound"):
        near, far = lower["radii"]
        lines.append(
            f"no rule has a mean excess risk below {lower['value']:.3g} on both of the instances with radii "
            f"{near:g} and {far:.4g}, whichever group is harder"
        )
    return [*lines, *found["assumed"]]


def _exploring(found: dict[str, Any], how: str) -> list[str]:
    from evenhand.claims.guarantees.promise import count

    look, lines = found["exploration"], []
    if look["stuck"]:
        lines.append(
            f"no promise: ε-greedy, {how}, over-explores and stays away from the fair mixture (ε above "
            f"{look['largest_epsilon']:.4g})"
        )
        if look["tau0_labels"] is not None:
            lines.append(f"that is certain from {count(look['tau0_labels'])} labels")
        if "floor" in look:
            lines.append(
                f"excess risk stays above {look['floor']:.5f} from there, and ends near {look['last_floor']:.5f}"
            )
    return lines + _promise(found, f", {how}")


def _promise(found: dict[str, Any], how: str = "") -> list[str]:
    from evenhand.claims.guarantees.promise import count

    lines = []
    if promise := found.get("promise"):
        head, *rest = promise["text"].split("; ")
        speaks = [part for part in rest if "speak" in part]
        lines.append("; ".join([head, *speaks]) + f" ({promise['labels']} labels are {promise['rounds']} rounds)")
        if promise["floor"] > 0:
            lines.append(
                f"no budget brings that promise below {promise['floor']:.4g}, because C ends at its resolution"
            )
        if promise["note"]:
            lines.append(promise["note"])
        if not how:
            lines.append("it is for that very rule: `optimistic` as campaigns run it, with c0/√N, has no promise")
    if budget := found.get("budget"):
        need = "no budget gives it" if budget["labels"] is None else f"it takes {count(budget['labels'])} labels"
        lines.append(f"to be promised an excess risk of {budget['target']:g}{how}: {need}")
    return lines


def _remarks(found: dict[str, Any]) -> list[str]:
    remarks = found.get("remarks")
    if remarks is None:
        return [found["coupling_term"]]
    lines = []
    if order := remarks["order"]:
        lines.append(
            f"Remark 1: the promise is of the order {order['form']} = {order['value']:.4g}; constants and logarithms make "
            f"it {order['hidden']:.3g} times that"
        )
    lines.append(f"Remark 3: {remarks['comparison']['text']}")
    lines.append(f"{found['coupling_term']}; without it the first phase may add B₀' = {remarks['first_phase']:.4g}")
    if greedy := remarks.get("greedy"):
        good, bad = greedy["at_the_fair_mixture"], greedy["before_the_run"]
        lines.append(
            f"Remark 2: the greedy rule's own bound (Abernethy et al.) is {good['value']:.4g} if it ends on the fair mixture "
            f"with {good['examples']:.0f} examples of the smallest group; nothing keeps it from {bad['value']:.3g}, with one"
        )
    return lines
