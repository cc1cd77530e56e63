"""The campaign: ask which group is next, tell what came."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.certificates import Certificate
from evenhand.decision import Decision
from evenhand.engine import rows
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels
from evenhand.engine.settings import as_population, as_seed, check_report, check_settings, forced_warning, learner_seed
from evenhand.engine.shelf import Delivery, Examples, Shelf
from evenhand.learners import Model, as_learner
from evenhand.monitor import Monitor
from evenhand.request import Docket, LearnerError, NothingToAsk, Receipt, Request, why_nothing
from evenhand.standing import Standing
from evenhand.stopping import Rule
from evenhand.strategies import Strategy

__all__ = ["Campaign"]


class Campaign:
    """A labelling campaign: `ask` whom to label next, `tell` what came, until the budget is spent.

    Args:
        groups: the names of the groups.
        strategy: which group next, e.g. `Optimistic()`.
        learner: what is trained, e.g. `Logistic()`; None if you train yourself and call `tell_losses`.
        budget: how many labels may be spent, training and validation together.
        batch: examples of each role a request asks for; a request is `2·batch` labels.
        warmup: warm-up rounds, groups in turn; None is one round for every group.
        validation: the share of each group's examples that validates.
        classes: the labels there may be; None learns them on the way.
        population: each group's share of the population, a mapping or in the order of `groups`.
        seed: the same seed, the same campaign; a pair (seed, trial) is that trial of a simulation.
        stop: a stopping rule, e.g. `TargetError(0.1) | Deadline("2027-03-01")`.

    >>> import evenhand as eh
    >>> c = eh.Campaign(["u", "v"], eh.Uniform(), budget=4, seed=1)
    >>> r = c.ask()
    >>> _ = c.tell(r, n=2)
    >>> c.ask().group != r.group
    True
    """

    def __init__(
        self,
        groups: Sequence[str],
        strategy: Strategy,
        learner: Any = None,
        *,
        budget: int,
        batch: int = 1,
        warmup: int | None = None,
        validation: float = 0.5,
        classes: Sequence[Any] | None = None,
        population: Mapping[str, float] | Sequence[float] | None = None,
        seed: int | tuple[int, int] = 0,
        stop: Rule | None = None,
    ) -> None:
        names = check_settings(groups, strategy, budget=budget, batch=batch, warmup=warmup, validation=validation)
        self.groups, self.strategy, self.budget, self.batch = names, strategy, int(budget), int(batch)
        self.learner = None if learner is None else as_learner(learner, getattr(strategy, "loss", "zero_one"))
        number, trial = as_seed(seed)
        self._shelf = Shelf(names, self.learner, Labels(classes), learner_seed(number, trial))
        self._engine = Engine(
            names,
            strategy,
            None,
            trials=[trial],
            seed=number,
            warmup=warmup or 0,
            validation=validation,
            population=as_population(population, names, strategy),
        )
        self._docket = Docket()
        self.labels_used = 0
        self.monitor = Monitor(names, stop)
        if message := forced_warning(strategy, len(names), budget * (1 - validation)):
            warnings.warn(message, stacklevel=2)

    def ask(self) -> Request:
        """The next request; fits first if examples came since the last one."""
        size = min(2 * self.batch, self._unspent())
        if reason := self._nothing(size):
            raise NothingToAsk(reason)
        learns = getattr(self.learner, "incremental", False) or self.monitor.stop is not None
        standing = self.standing(refit=learns or getattr(self.strategy, "needs_scores", True))
        if self.monitor.look(self._fitted(), standing, self.labels_used):
            raise NothingToAsk("stopping rule")
        decision = self.strategy(standing, self._engine.coins()[0])
        if not isinstance(decision, Decision):
            raise ValueError(f"the strategy gave {decision!r}: a strategy returns a Decision (see Decision.of)")
        validating = self._engine.expected_validation(int(decision.index), size)
        request = Request(int(self._engine.asked[0]) + 1, decision.group, size, validating, decision)
        self._engine.asked[0] += 1
        self._expect(request, +1)
        self._docket.open[request.id] = request
        return request

    def ask_many(self, count: int) -> list[Request]:
        """Up to `count` requests at once, spread over groups as if the open ones were already answered."""
        if count < 1:
            raise ValueError(f"ask for 1 request or more, not {count}")
        found = [self.ask()]
        while len(found) < count:
            try:
                found.append(self.ask())
            except NothingToAsk:
                break
        return found

    @property
    def open_requests(self) -> list[Request]:
        """Requests that were neither answered nor abandoned, oldest first."""
        return list(self._docket.open.values())

    @property
    def done(self) -> bool:
        """Whether no request can ever be made again."""
        return not self._docket.open and self._nothing(min(2 * self.batch, self._unspent())) is not None

    def abandon(self, request: Request | int) -> None:
        """Give up a request; its labels go back to the budget."""
        self._expect(self._docket.give_up(request), -1)

    def retire(self, group: str) -> None:
        """Ask no more of this group: it has nothing left to give."""
        self._engine.available[0, self._index(group)] = False

    def tell(self, request: Request | int, X: Any = None, y: Any = None, *, n: int | None = None) -> Receipt:
        """Answer a request with labelled rows, or with their number where somebody else trains. Never fits.

        The same delivery told twice changes nothing; another one for the same request is refused.
        """
        if (X is None) != (y is None) or (X is None) == (n is None):
            raise ValueError("tell either rows, tell(request, X, y), or their number, tell(request, n=...)")
        X, labels = self._shelf.check(X, y) if n is None else (None, [])
        count = len(labels) if n is None else int(n)
        if count < 1:
            raise ValueError("an empty delivery: tell at least one row, or abandon the request")
        if n is not None and self.learner is not None:
            raise ValueError("this campaign has a learner, which needs the rows: tell(request, X, y)")
        mark = rows.digest(X, labels) if n is None else f"n={count}"
        if self._docket.answered(request, mark):
            return Receipt(request.id if isinstance(request, Request) else request, count, 0, 0, 0)
        found = self._docket.find(request)
        validation = self._record(found.id, X, labels, np.full(count, self._index(found.group)))
        self._docket.answer(found, mark)
        self._expect(found, -1)
        self.labels_used += count
        held = int(validation.sum())
        return Receipt(found.id, count, count - held, held, count - found.size)

    def add(self, X: Any, y: Any, groups: Sequence[str], *, charge: bool = False) -> Receipt:
        """Bring in labelled data you already have; free unless `charge=True`."""
        X, labels = self._shelf.check(X, y)
        group = np.array([self._index(str(name)) for name in groups], dtype=np.int64)
        if len(group) != len(labels):
            raise ValueError(f"{len(labels)} rows but {len(group)} groups: give one group per row")
        if not labels:
            raise ValueError("nothing to add: X has no rows")
        validation = self._record(0, X, labels, group)
        self.labels_used += len(labels) if charge else 0
        held = int(validation.sum())
        return Receipt(0, len(labels), len(labels) - held, held, 0)

    def tell_losses(self, losses: Mapping[str, tuple[float, float, int]]) -> None:
        """Report your own model's mean loss, accuracy and number of validation examples, group by group."""
        if self.learner is not None:
            raise ValueError("this campaign has a learner and scores by itself; make it with learner=None to report")
        self._engine.report_some({self._index(group): check_report(group, found) for group, found in losses.items()})

    def standing(self, refit: bool = True) -> Standing:
        """What is known per group now; `refit=False` does not bring the model up to date first."""
        if refit:
            self._guard(self._engine.refit)
        return self._engine.standing().trial(0)

    @property
    def counts(self) -> dict[str, int]:
        """Training examples per group."""
        return dict(zip(self.groups, self._engine.counts[0].tolist(), strict=True))

    @property
    def mixture(self) -> dict[str, float]:
        """Each group's share of the training examples."""
        n = self._engine.counts[0]
        return dict(zip(self.groups, (n / max(n.sum(), 1)).tolist(), strict=True))

    @property
    def round(self) -> int:
        """How many requests were answered."""
        return len(self._docket.told)

    @property
    def model(self) -> Model | None:
        """The model fitted on the training set as it stands; None before the first example."""
        self._guard(self._engine.refit)
        if self._engine.memory is not None and self._fitted() is None:
            self._guard(self._engine.memory.fit)
        return self._fitted()

    def final_model(self) -> Model:
        """The learner fitted on every label, training and validation together: what to deploy."""
        if self._engine.memory is None:
            raise ValueError("there is no model: this campaign has no learner or no examples yet")
        found: list[Model] = self._guard(self._engine.memory.final_models)
        return found[0]

    def certify(self, model: Model | None = None) -> Certificate:
        """Freeze a model, by default the current one: validation examples told from now on are evidence on it.

        `monitor.certificate()` says what is certain about it, `monitor.running()` about the models so far.
        """
        trained_on = int(self._engine.counts.sum())
        frozen, own = model or self.model, model is not None
        return self.monitor.freeze(frozen, labels=self.labels_used, trained_on=trained_on, own=own)

    def training_set(self) -> Examples:
        """The training examples, in the order they came."""
        return self._shelf.examples(validation=False)

    def validation_set(self) -> Examples:
        """The validation examples of all groups, in the order they came."""
        return self._shelf.examples(validation=True)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the campaign to a folder of JSON and Arrow files."""
        from evenhand.campaign_files import save

        save(self, folder)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        *,
        strategy: Strategy | None = None,
        learner: Any = None,
        stop: Rule | None = None,
    ) -> Campaign:
        """A saved campaign; its stopping rule, and a strategy or learner of your own, have to be given again."""
        from evenhand.campaign_files import load

        return load(folder, strategy=strategy, learner=learner, stop=stop)

    def _unspent(self) -> int:
        return self.budget - self.labels_used - sum(request.size for request in self.open_requests)

    def _nothing(self, size: int) -> str | None:
        reason = why_nothing(size, available=self._engine.available[0].any(), waiting=bool(self._docket.open))
        return "stopping rule" if self.monitor.stopped is not None and reason != "groups used up" else reason

    def _expect(self, request: Request, sign: int) -> None:
        z = self._index(request.group)
        self._engine.pending[0, z] += sign * (request.size - request.validating)
        self._engine.pending_validation[0, z] += sign * request.validating

    def _index(self, group: str) -> int:
        if group not in self.groups:
            raise ValueError(f"unknown group {group!r}: the groups are {', '.join(map(repr, self.groups))}")
        return self.groups.index(group)

    def _record(self, request: int, X: Any, labels: list[Any], group: NDArray[np.int64]) -> NDArray[np.bool_]:
        trial = np.zeros(len(group), dtype=np.int64)
        validation = self._engine.roles(trial, group)
        if X is not None:
            if request:
                held, y = self._shelf.matrix(rows.take(X, validation)), np.asarray(labels)[validation]
                self.monitor.score(self._fitted(), held, y, group[validation])
            self._shelf.put(Delivery(request, X, labels, group, validation))
            self._engine.memory = self._shelf.memory
        self._engine.tally(trial, group, validation)
        return validation

    def _fitted(self) -> Model | None:
        """The model of the last fit, without a new one."""
        return None if self._engine.memory is None else self._engine.memory.models()[0]

    def _guard(self, fit: Callable[[], Any]) -> Any:
        try:
            return fit()
        except Exception as error:
            raise LearnerError(f"the learner failed in fit after round {self.round}: {error}") from error
