"""What a long run has computed so far, kept in a file, so that a killed run can continue to the same result.

Everything but training is cheap to do again: the source draws the same examples, the strategy decides the same from
the same scores. So a checkpoint holds the network after the last update and, for all rounds before it, the scores and
the test predictions that the run was given; the restarted run is given the same ones until it has caught up.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from evenhand.arrays import Values
from evenhand.engine.memories.base import Scores
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.notation import JsonObject

_VERSION = 2
_SCORES = {"loss_sum": "loss_sum", "correct": "correct", "n": "count", "relevant": "relevant"}
"""The parts of scores and their names in an event, where `n` is the number of examples that the event is about."""


class Checkpoint:
    """The events of one run, in order; `replaying` while some of them are still to be repeated.

    Args:
        folder: where the checkpoint is kept.
        run: what distinguishes this run from others: rule, seed, trial.
        settings: what must be the same for a checkpoint to be of use.
    """

    def __init__(self, folder: str | Path, run: str, settings: str) -> None:
        # readable for people; the digest behind it keeps apart what the slug makes alike
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", run).strip("-")[:60]
        self.path = Path(folder) / f"{slug}-{hashlib.sha256(run.encode()).hexdigest()[:8]}.pt"
        self.settings = settings
        self.events: list[JsonObject] = []
        self._ahead: deque[JsonObject] = deque()

    @property
    def replaying(self) -> bool:
        """Whether the next event is one of the checkpoint's."""
        return bool(self._ahead)

    def open(self) -> JsonObject | None:
        """The network's state in the checkpoint, if there is one; its events are then replayed."""
        import torch

        if not self.path.exists():
            return None
        try:
            kept = torch.load(self.path, weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise InputError(f"{self.path} is not a checkpoint of Evenhand ({error}): remove it") from error
        if kept["version"] != _VERSION or kept["settings"] != self.settings:
            raise InputError(
                f"the checkpoint {self.path} was made with other settings ({kept['settings']}, now {self.settings}): "
                "remove it, or name another folder"
            )
        self._ahead = deque(kept["events"])
        state: JsonObject = kept["state"]
        return state

    def save(self, state: JsonObject) -> None:
        """Write all events so far together with the network's state."""
        import torch

        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"version": _VERSION, "settings": self.settings, "events": self.events, "state": state}
        write_atomically(self.path, lambda path: torch.save(whole, path))

    def fit(self, examples: int, came: str, train: Callable[[], None]) -> bool:
        """Make one update, unless the checkpoint already has it; returns whether it was trained.

        `came` is a digest of the labels, groups and roles so far: if it differs, the checkpoint is of another run.
        """
        if self._next("fit", examples, came) is not None:
            return False
        train()
        self.events.append({"kind": "fit", "n": examples, "came": came})
        return True

    def scores(self, examples: int, compute: Callable[[], Scores]) -> Scores:
        """Validation scores."""
        found = self._next("score", examples)
        if found is not None:
            return Scores(*(found[name].numpy() for name in _SCORES.values()))
        scores = compute()
        self.events.append({"kind": "score", "n": examples} | _tensors(scores))
        return scores

    def answers(self, examples: int, compute: Callable[[], Values], kind: str, what: str = "predict") -> Values:
        """The network's outputs on other examples (a test set): positions of classes for `predict`, else numbers."""
        import torch

        found = self._next(kind, examples, what=what)
        if found is not None:
            return np.asarray(found[what].numpy())
        answers = compute()
        # one byte per example if that is enough: a run may have predicted thousands of test sets
        small = answers.astype(np.uint8) if what == "predict" and answers.max(initial=0) < 256 else answers
        self.events.append({"kind": kind, "n": examples, what: torch.from_numpy(np.ascontiguousarray(small))})
        return answers

    def _next(self, kind: str, examples: int, came: str = "", what: str = "n") -> JsonObject | None:
        if kind != "final" and self._ahead and self._ahead[0]["kind"] == "final":
            self._ahead.clear()  # the run had reached its end and is now continued beyond it
        if not self._ahead:
            return None
        event = self._ahead.popleft()
        if (event["kind"], event["n"], event.get("came", "")) != (kind, examples, came) or what not in event:
            raise InputError(
                f"the checkpoint {self.path} is of another run (where this one has {kind} of {examples:,} examples it "
                f"has {event['kind']} of {event['n']:,}, or other ones): remove it, or name another folder"
            )
        self.events.append(event)
        return event


def _tensors(scores: Scores) -> JsonObject:
    import torch

    return {name: torch.from_numpy(np.ascontiguousarray(getattr(scores, part))) for part, name in _SCORES.items()}
