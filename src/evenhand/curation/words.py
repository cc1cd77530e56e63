"""The report in sentences: its title, and what to do next. Terminal, JSON and page say the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evenhand.claims.paired import DOES_NOT_HOLD, HOLDS, OPEN, Interval
from evenhand.claims.planning import labels_for_width
from evenhand.notation import JsonObject
from evenhand.risks import RATES, title_of

WIDTH = 0.03
"""Half the width of an interval narrow enough to be useful."""

_SHORT = {"fnr": "false negatives", "fpr": "false positives"}


def percent(share: float | None, digits: int = 1) -> str:
    """A share in per cent.

    >>> percent(0.7123)
    '71.2 %'
    """
    return "—" if share is None else f"{100 * share:.{digits}f} %"


def points(difference: float) -> str:
    """A difference of shares in points, with its sign.

    >>> points(-0.0123)
    '−1.2'
    """
    return _signed(100 * difference, 1)


def gain(risk: str, difference: float) -> str:
    """A difference of risks with its sign: of rates in points, of other losses as they are."""
    return points(difference) if is_rate(risk) else _signed(difference, 3)


def compared(risk: str, found: JsonObject) -> str:
    """Which of two rules served the worst-off better, by how much, and how sure that is.

    >>> compared("error", {"a": "optimistic", "b": "uniform", "mean": 0.007, "low": 0.004, "high": 0.011})
    'optimistic is better than uniform for the worst-off by 0.7 points [0.4, 1.1]'
    >>> compared("error", {"a": "optimistic", "b": "uniform", "mean": -0.002, "low": -0.005, "high": 0.001})
    'no clear difference between optimistic and uniform: −0.2 points [−0.5, +0.1]'
    """
    unit = " points" if is_rate(risk) else ""
    ends, verdict = (found["low"], found["high"]), served_better(found)
    if verdict == OPEN:
        mean, low, high = (gain(risk, number) for number in (found["mean"], *ends))
        return f"no clear difference between {found['a']} and {found['b']}: {mean}{unit} [{low}, {high}]"
    which = "better" if verdict == HOLDS else "worse"
    mean, low, high = (spread(risk, abs(number)) for number in (found["mean"], *sorted(ends, key=abs)))
    return f"{found['a']} is {which} than {found['b']} for the worst-off by {mean}{unit} [{low}, {high}]"


def served_better(found: JsonObject) -> str:
    """Whether rule `a` of a difference in a report served the worst-off better than `b`, as a verdict."""
    return Interval(found["mean"], found["low"], found["high"]).above()


def _signed(number: float, digits: int) -> str:
    found = round(number, digits)
    return f"{found:+.{digits}f}".replace("-", "−") if found else f"{0:.{digits}f}"


def is_rate(risk: str) -> bool:
    """Whether a risk is a share of examples, shown in per cent."""
    return risk in RATES


def value(risk: str, number: float | None) -> str:
    """A risk as people read it: rates in per cent, other losses as they are."""
    if number is None:
        return "—"
    return percent(number) if is_rate(risk) else f"{number:.3f}"


def spread(risk: str, number: float | None) -> str:
    """A standard deviation or error of a risk: of rates in points, of other losses as it is.

    >>> spread("error", 0.0123), spread("log", 0.0123)
    ('1.2', '0.012')
    """
    if number is None:
        return "—"
    return f"{100 * number:.1f}" if is_rate(risk) else f"{number:.3f}"


def best_candidates(candidates: Sequence[JsonObject], most: int = 4) -> list[JsonObject]:
    """The candidates for the model to show beside the plain one, which comes first: the chosen one, then by risk."""
    return sorted(candidates[1:], key=lambda c: (not c["chosen"], c["risk"]))[:most]


def joined(names: Sequence[str], most: int = 3) -> str:
    """The first few names as part of a sentence, separated by semicolons if a name contains a comma.

    >>> joined(["a", "b", "c", "d"], most=2), joined(["sex=f, age=1", "sex=m, age=1"])
    ('a, b and 2 more', 'sex=f, age=1; and sex=m, age=1')
    """
    commas = any("," in name for name in names)
    comma, last = ("; ", "; and ") if commas else (", ", " and ")
    if len(names) <= most:
        return last.join(filter(None, [comma.join(names[:-1]), names[-1]])) if names else ""
    return f"{comma.join(names[:most])}{last}{len(names) - most} more"


def title(summary: JsonObject) -> str:
    """Who is worst off and how badly, in one line."""
    worst, risk = summary["worst"], summary["risk"]
    if worst is None:
        tested = any(row["count"] for row in summary["by_group"])
        if not tested and summary["progress"] and not summary["progress"]["done"]:
            return f"{summary['labels']:,} of {summary['progress']['budget']:,} labels so far, not tested"
        if not tested:
            return f"{summary['labels']:,} rows chosen, not tested"
        return f"No group has {summary['min_test']:,} {counted(summary)}: who is worst off is not known"
    if risk == "error":
        low, high = (f"{100 * worst[end]:.1f}" for end in ("low", "high"))
        return f"Worst-off: {worst['group']}, {percent(worst['accuracy'])} right [{low}, {high}]"
    if risk in RATES:
        low, high = (f"{100 * worst[end]:.1f}" for end in ("risk_low", "risk_high"))
        return (
            f"Worst-off: {worst['group']}, {percent(worst['risk'])} {_SHORT.get(risk, title_of(risk))} [{low}, {high}]"
        )
    said = f"Worst-off: {worst['group']}, {summary['risk_title']} {worst['risk']:.3f}"
    if worst["risk_low"] is None:
        return said
    return f"{said} [{worst['risk_low']:.3f}, {worst['risk_high']:.3f}]"


def counted(summary: JsonObject) -> str:
    """The rows that a group's figure rests on: those of one class alone where the risk is about one class."""
    all_rows = all(row["relevant"] == row["count"] for row in summary["by_group"])
    return "test rows" if all_rows else f"test rows that the {summary['risk_title']} is about"


def advice(summary: JsonObject) -> list[str]:
    """What to do next, most urgent first; each sentence rests on a figure of the report."""
    return list(_advice(summary))


def _advice(s: JsonObject) -> Iterator[str]:
    rows, worst, progress = s["by_group"], s["worst"], s["progress"]
    if progress and not progress["done"]:
        yield _to_label(progress)
    if progress and not any(row["count"] for row in rows):
        if not s["settings"]["test_labels"]:
            yield "Set labels aside for testing in your next plan (test_labels=..., --test-labels): nobody knows who is worst off."
        return
    if not any(row["count"] for row in rows):
        yield "Give a test file or a held-out share (test=0.3, --test 0.3): without test rows nobody knows who is worst off."
        return
    few = [row["group"] for row in rows if row["few"]]
    if few:
        which = counted(s).removeprefix("test rows")
        each = f"each{which}," if which else "each"
        said = f"Get more test rows of {joined(few)}: with fewer than {s['min_test']:,} {each} nothing is claimed about them."
        if 1 < len(few) < len(rows):  # one alone would only get another name, and all together leave nobody to compare
            least = 1 + max(row["pool"] for row in rows if row["few"])
            said += f" Or make one group of them (merge_below={least}, --merge-below {least})."
        yield said
    for group in s["used_up"]:
        yield f"Collect more rows of {group}: every one that may be drawn was taken."
    if worst is None:
        return
    if worst["low"] is not None and worst["low"] <= worst["majority_accuracy"]:
        yield (
            f"For {worst['group']} the model is not clearly better than always saying {s['majority']!r} "
            f"({percent(worst['majority_accuracy'])} right): look for columns that tell more about them before buying labels."
        )
    yield from _against_others(s)
    if s["risk"] == "error" and (worst["high"] - worst["low"]) / 2 > WIDTH:
        needed = labels_for_width(WIDTH, worst["error"], groups=len(rows), any_time=False)
        if needed > worst["count"]:
            yield (
                f"To know the accuracy for {worst['group']} to ±{100 * WIDTH:.0f} points, test on about {needed:,} of their rows; "
                f"there are {worst['count']:,}."
            )
    if s["risk"] == "error":
        yield from _halves(s)


def _to_label(progress: JsonObject) -> str:
    name, rows = progress["list"], f"Label the {progress['to_label']:,} rows of"
    if name is None:
        return f"{rows} `todo` and give them back with `tell`."
    return f"{rows} {name} and give them back (labels={name!r}, --labels {name})."


def _against_others(s: JsonObject) -> Iterator[str]:
    found = s["comparison"]["differences"]
    better = [d["b"] for d in found if served_better(d) == DOES_NOT_HOLD]
    if better:
        yield f"In the trials {joined(better)} served the worst-off better: use that rule, or try other settings of this one."
    elif found and not any(served_better(d) == HOLDS for d in found):
        widest = max(found, key=lambda d: d["high"] - d["low"])
        if widest["high"] - widest["low"] > 2 * WIDTH:
            ends = " to ".join(gain(s["risk"], widest[end]) for end in ("low", "high"))
            unit = " points" if is_rate(s["risk"]) else ""
            more = max(20, 4 * s["comparison"]["trials"])
            yield (
                f"No clear difference to the other rules, and {s['comparison']['trials']:,} trials cannot tell: against {widest['b']} it may be "
                f"{ends}{unit}. Compare on more trials (compare={more}, --compare {more})."
            )
        else:
            yield (
                "No clear difference to the other rules at this budget: which rows are chosen is not what limits the worst-off here."
            )


def _halves(s: JsonObject) -> Iterator[str]:
    """A sentence on what the second half of the labels brought the worst-off group."""
    rounds, place = s["rounds"], s["groups"].index(s["worst"]["group"])
    tested = [i for i, found in enumerate(rounds["accuracy"]) if found is not None and found[place] is not None]
    half = [i for i in tested if rounds["labels"][i] <= s["labels"] / 2]
    if not half or tested[-1] == half[-1]:
        return
    before, after = (rounds["accuracy"][i][place] for i in (half[-1], tested[-1]))
    noise = 2 * math.sqrt(2 * after * (1 - after) / s["worst"]["count"])
    verdict = (
        "more labels are likely to help" if after - before > noise else "that is within the noise of the test rows"
    )
    yield (
        f"The second half of the labels brought {s['worst']['group']} from {percent(before)} to {percent(after)} right "
        f"(models fitted on the training rows alone): {verdict}."
    )
