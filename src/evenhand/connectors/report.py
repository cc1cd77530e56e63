"""What one pass of a sync did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice

from evenhand.notation import JsonObject

LISTED = 100
"""How many disagreements and problems are listed at most; their number is always given."""
_COUNTS = ("tasks", "told", "corrected", "withdrawn", "skipped", "asked", "unasked")


@dataclass
class Report:
    """What one pass did, or in a dry run would do.

    Attributes:
        tasks: tasks that became examples of the pool, or whose data changed before they were handed out.
        told, corrected, withdrawn, skipped: labels that came, changed or were taken back; examples nobody can label.
        asked: requests that were made.
        shown: tasks that people see next.
        unasked: tasks that were answered although nobody asked for them; they count once it is their turn.
        disagreements: tasks whose answers contradict each other so that they have no label, and who said what.
        problems: what is wrong with tasks, by their id in the tool.
        nothing_to_ask: why no request was made; None if one could be.
        dry_run: whether this only says what would be done.
    """

    tasks: int = 0
    told: int = 0
    corrected: int = 0
    withdrawn: int = 0
    skipped: int = 0
    asked: int = 0
    shown: int = 0
    unasked: int = 0
    disagreements: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    nothing_to_ask: str | None = None
    dry_run: bool = False

    def as_dict(self) -> JsonObject:
        """The report as plain values; long lists are cut, and `disagreeing` and `with_problems` count all."""
        found = asdict(self)
        for name, count in (("disagreements", "disagreeing"), ("problems", "with_problems")):
            found[count] = len(found[name])
            found[name] = dict(islice(found[name].items(), LISTED))
        return found

    def __str__(self) -> str:
        done = [f"{getattr(self, name)} {name}" for name in _COUNTS if getattr(self, name)]
        done += [f"{self.shown} to label"] if self.shown else []
        done += [f"nothing to ask: {self.nothing_to_ask}"] if self.nothing_to_ask else []
        lines = [("dry run: " if self.dry_run else "") + (", ".join(done) or "nothing new")]
        for task, answers in islice(self.disagreements.items(), 5):
            lines.append(
                f"  task {task}: they disagree, " + ", ".join(f"{who} {label}" for who, label in answers.items())
            )
        lines += [f"  … and {len(self.disagreements) - 5} more disagreements"] if len(self.disagreements) > 5 else []
        lines += [f"  task {task}: {problem}" for task, problem in islice(self.problems.items(), 5)]
        lines += (
            [f"  … and {len(self.problems) - 5} more problems: --json lists them"] if len(self.problems) > 5 else []
        )
        return "\n".join(lines)
