"""The verbs that change or take back what was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from evenhand.campaign.correcting import Alteration, correct, erase, withdraw
from evenhand.campaign.looking import Looking
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.ledger import Reader

__all__ = ["Altering"]


class Altering(Looking):
    """Corrections, withdrawals, erasure."""

    def correct(
        self, id: str | Mapping[str, object], label: object = None, reason: str | None = None, by: str | None = None
    ) -> int:
        """Correct the label of an example, or of several with `{id: label}`, all or none; returns how many changed.

        The first label is kept beside the new one. Counts and example sets change at once, scores at the next refit;
        earlier models, a frozen one included, stay as they were fitted. Reasons and names are kept for good: put no
        personal data in them.
        """
        labels = dict(id) if isinstance(id, Mapping) else {id: label}
        return self._alter(lambda s, r: correct(s, r, labels, self.store.intake.classes(s, r), reason), by)

    def correct_written(self, id: str, label: str, reason: str | None = None, by: str | None = None) -> int:
        """Correct a label that is written as text: `0` means class 0 where the classes are numbers."""
        return self._correct_text({id: label}, reason, by)

    def correct_file(self, path: str | PathLike[str], reason: str | None = None, by: str | None = None) -> int:
        """Correct the labels in a file with columns for id and label."""
        names, values, frame = self.labels_in(Path(path))
        frame.refuse_skipped()
        return self._correct_text(dict(zip(names, values, strict=True)), reason, by)

    def _correct_text(self, labels: Mapping[str, object], reason: str | None, by: str | None) -> int:
        return self._alter(
            lambda s, r: correct(s, r, labels, self.store.intake.classes(s, r), reason, written=True), by
        )

    def withdraw(
        self, id: str | Sequence[str], reason: str | None = None, refund: bool = False, by: str | None = None
    ) -> int:
        """Take examples back for good: they no longer count; `refund` gives their labels back to the budget."""
        names = [id] if isinstance(id, str | int | np.integer) else list(id)
        return self._alter(lambda s, r: withdraw(s, r, names, reason, refund=refund), by)

    def erase(self, id: str | Sequence[str], reason: str | None = None, by: str | None = None) -> list[str]:
        """Delete the features and labels of examples from storage, for good; ids, reasons and names stay.

        Returns what may still hold values learned from them: the frozen models in the ledger. Backups, replicas and
        your own files are out of its reach.
        """
        names = [id] if isinstance(id, str | int | np.integer) else list(id)
        self._alter(lambda s, r: erase(s, r, names, reason), by)
        # until then the erased values are still in SQLite's log
        self.store.ledger.checkpoint()
        self.store.use(Parts(self.store.parts.settings, self.store.parts.given))  # caches hold rows too
        frozen = self.store.state.frozen
        return [] if frozen is None else [f"frozen model {k}" for k in range(1, frozen["version"] + 1)]

    def _alter(self, decide: Callable[[State, Reader], Alteration], by: str | None) -> int:
        changed: list[int] = []
        # a campaign that has ended accepts these too: somebody may ask to be forgotten at any time
        self.store.write(lambda s, w: changed.append(decide(s, w).write(w, by)))
        return changed[0]
