"""What a campaign keeps to make claims and to know when to stop: evidence, scores of late, the frozen model."""

import copy
from collections import deque
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.certificates import Certificate, Evidence, Running
from evenhand.standing import Standing
from evenhand.stopping import Rule

__all__ = ["Monitor"]

_STATE = ("version", "labels", "frozen_labels", "trained_on", "own", "stopped")


class Monitor:
    """Scores every new validation example before it is used, and says when a stopping rule is met.

    Args:
        groups: the names of the groups.
        stop: a stopping rule, or None.
        repeats: whether the same example may come again; then every example needs an id, and counts once.

    Attributes:
        labels: labels spent at the last look.
        errors, validated: the groups' error and size on the steering validation set at the last look; an indication,
            not a claim.
        scores: the groups' validation losses at the last looks, as far back as the stopping rule needs.
        version: how many models have been frozen.
        frozen_labels: labels spent when the last one was.
        stopped: why the campaign stopped, None while it goes on.
    """

    def __init__(self, groups: Sequence[str], stop: Rule | None = None, *, repeats: bool = False) -> None:
        if stop is not None and not isinstance(stop, Rule):
            raise ValueError(f"stop must be a stopping rule such as TargetError(0.1), got {stop!r}")
        self.groups, self.stop = tuple(groups), stop
        self.repeats, self._seen = repeats, set[Hashable]()
        self.past = Evidence(self.groups)
        self.frozen: Any = None
        self.since: Evidence | None = None
        self.version, self.labels, self.frozen_labels, self.trained_on, self.own = 0, 0, 0, 0, False
        self.errors, self.validated = np.full(len(self.groups), np.nan), np.zeros(len(self.groups), dtype=np.int64)
        self.stopped: str | None = None
        self.scores: deque[tuple[float | None, ...]] = deque(maxlen=1 + (stop.rounds_back if stop else 0))

    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC)

    def score(self, model: Any, X: Any, y: Any, group: ArrayLike, ids: Sequence[Hashable] | None = None) -> None:
        """New validation examples: by the last model fitted before they came, and by the frozen one."""
        where = np.asarray(group, dtype=np.int64)
        new = self._new(len(where), ids)
        if not new.any():
            return
        if model is not None:
            self.past.add(where[new], np.asarray(model.losses(X, y))[new])
        if self.frozen is not None and self.since is not None:
            self.since.add(where[new], np.asarray(self.frozen.losses(X, y))[new])

    def _new(self, count: int, ids: Sequence[Hashable] | None) -> NDArray[np.bool_]:
        """Which examples were not seen before: a repeated one is no evidence."""
        if ids is None:
            if self.repeats and count:
                raise ValueError("examples may repeat here: give their ids, or no certificate can be made")
            return np.ones(count, dtype=bool)
        new = np.zeros(count, dtype=bool)
        for k, name in enumerate(ids):
            new[k] = name not in self._seen
            self._seen.add(name)
        return new

    def look(self, model: Any, standing: Standing, labels: int) -> str | None:
        """After a refit: remember the scores, freeze the model if the rule wants it, and say whether to stop."""
        self.labels = labels
        if self.stop is None:
            return None
        self.validated = np.array(standing.validated)
        loss = standing.loss_sum / np.maximum(self.validated, 1)
        self.scores.append(tuple(x if n else None for x, n in zip(loss.tolist(), self.validated, strict=True)))
        self.errors = 1 - _latest(standing.accuracies)
        if self.stopped is None:
            self.stopped = self.stop.reason(self)
        if self.stopped is None and model is not None and self.stop.freeze(self):
            self.freeze(model, labels=labels, trained_on=int(standing.counts.sum()))
        return self.stopped

    def freeze(self, model: Any, *, labels: int, trained_on: int, own: bool = False) -> Certificate:
        """Freeze a model fitted on the first `trained_on` examples: new validation examples are evidence on it.

        `own` says that it is not the learner's, so it cannot be fitted again after loading.
        """
        if model is None:
            raise ValueError("there is no model to certify yet")
        # learners may go on training the same object
        self.frozen, self.since = copy.deepcopy(model), Evidence(self.groups)
        self.version += 1
        self.labels, self.frozen_labels, self.trained_on, self.own = labels, labels, trained_on, own
        return self.since.certificate(self.version)

    def running(self, delta: float = 0.05) -> Running:
        """On the models of the past: their average risk in every group."""
        return self.past.running(delta)

    def certificate(self, delta: float = 0.05) -> Certificate | None:
        """On the frozen model; None if there is none."""
        return None if self.since is None else self.since.certificate(self.version, delta)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the frozen model, as plain values; that one was trained on the first `trained_on` examples."""
        return {
            **{name: getattr(self, name) for name in _STATE},
            "past": self.past.as_dict(),
            "since": None if self.since is None else self.since.as_dict(),
            "scores": [list(row) for row in self.scores],
            "seen": list(self._seen),
        }

    def restore(self, state: dict[str, Any], frozen: Any) -> None:
        """Go on from saved values and the frozen model, trained again.

        Without that model its certificate stands as it was, and gathers no more evidence.
        """
        for name in _STATE:
            setattr(self, name, state[name])
        self.past = Evidence.from_dict(self.groups, state["past"])
        self.since = None if state["since"] is None else Evidence.from_dict(self.groups, state["since"])
        self.frozen = frozen
        self._seen = set(state["seen"])
        self.scores.extend(tuple(row) for row in state["scores"])


def _latest(accuracies: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last accuracy of every group; NaN without any."""
    last = accuracies.shape[-1] - 1 - np.argmax(~np.isnan(accuracies[:, ::-1]), axis=-1)
    return np.asarray(accuracies[np.arange(len(accuracies)), last])
