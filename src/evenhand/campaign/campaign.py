"""The campaign: ask whom to label next, tell what came; all it knows is the fold of its ledger's events."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evenhand.arrays import plain
from evenhand.campaign.chooser import Chooser
from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.events import CHANGED, CLOSED, CREATED, REQUESTS, Closed, Settings, request_in
from evenhand.campaign.intake import Intake
from evenhand.campaign.labels import check_text
from evenhand.campaign.log import Log, Once, user_name
from evenhand.campaign.models import Models
from evenhand.campaign.pool import Pooled, PoolTable, fetch_ahead, order_anew, read_pool
from evenhand.campaign.requests import Options, Proposal, Receipt, Request, not_open, number_of, offered, request_of
from evenhand.campaign.settings import Parts, as_seconds, check_change, make_settings, parts_of
from evenhand.campaign.state import OpenRequest, State
from evenhand.engine.settings import forced_warning
from evenhand.errors import EvenhandError, InputError, LedgerError, NotFound, NothingToAsk, Repeated
from evenhand.ledger import Example, Ledger, MemoryLedger, Reader, Writer, open_ledger
from evenhand.ledger import copy as copy_ledger
from evenhand.notation import JsonObject, free_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from evenhand.arrays import Features
    from evenhand.campaign.labels import Label
    from evenhand.campaign.requests import Examples
    from evenhand.campaign.verification import Verification
    from evenhand.claims.certificates import Certificate, Running
    from evenhand.claims.stopping import Rule as StopRule
    from evenhand.learners import Model
    from evenhand.learners.choosing import FinalModel
    from evenhand.risks import OwnRisk, Risk
    from evenhand.strategies import Strategy
    from evenhand.strategies.standing import Standing
    from evenhand.tables.frame import Frame
    from evenhand.tables.spelling import Spellings

# what every database takes as an integer
_MOST = 2**31 - 1


class Campaign:
    """A labelling campaign: `ask` which group to label next, `tell` the labels that came, until the budget is spent.

    This one lives in memory; `Campaign.create` makes one that outlives the process, and `Campaign.open` opens it, from
    many processes at once. Each step takes the campaign's write lock, folds in the events that came since, decides, and
    appends: what a step has returned is stored. Fitting happens outside any transaction, in one process at a time.

    Args:
        groups: the names of the groups; None takes those of the first pool.
        strategy: which group next, e.g. `Optimistic()` or `"optimistic:c0=0.5"`.
        learner: what is trained, e.g. `Logistic()` or `"logistic"`; None if you train yourself and call `tell_losses`.
        budget: how many labels may be spent, training and validation together.
        batch: how many examples of each role a request asks for; a request is for `2·batch` labels.
        warmup: the number of warm-up rounds, which ask the groups in turn; None is one round for every group.
        validation: the share of each group's examples that is used for validation.
        classes: the possible labels; None learns them from the labels that come.
        population: each group's share of the population, as a mapping or in the order of `groups`.
        risk: what "worse off" means: `"error"`, `"log"`, `"fnr"`, `"fpr"`, `"balanced"`, `Costs(...)`, or a function
            `(model, X, y)` that gives a number in [0, 1] for every example and which of them are relevant.
        positive: the class that `"fnr"` and `"fpr"` are about.
        test_labels: how many labels of the budget are for testing; they are asked for first, equally many of each
            group, and never trained on.
        seed: the same seed makes the same choices; a pair (seed, trial) makes those of that trial of a simulation. None
            draws one, which `settings` shows. In memory a given seed also decides the order of a pool's rows, and then
            nothing can be certified about them; in a database that order is secret whatever the seed.
        stop: a stopping rule, e.g. `ErrorBelow(0.1) | Deadline("2027-03-01")`, or its text.
        refit: when the model is refitted: `"always"` (before an ask), a number (each time that many labels have come),
            or `"background"` (only when `refit()` is called).
        lease: how long a request waits for its labels, e.g. `"24h"`; None waits for ever.
        distinct: your word that every row told without an id is a different example; certificates need it.
        name: the campaign's name.

    Examples:
        >>> import evenhand as eh
        >>> c = eh.Campaign(["u", "v"], eh.Uniform(), budget=4, seed=1)
        >>> r = c.ask()
        >>> _ = c.tell(r, n=2)
        >>> c.ask().group != r.group
        True
    """

    def __init__(
        self,
        groups: Sequence[str] | None,
        strategy: str | Strategy = "optimistic",
        learner: object = None,
        *,
        budget: int,
        batch: int = 1,
        warmup: int | None = None,
        validation: float = 0.5,
        classes: Sequence[object] | None = None,
        population: Mapping[str, float] | Sequence[float] | None = None,
        risk: str | Risk | OwnRisk = "error",
        positive: object = None,
        test_labels: int = 0,
        seed: int | tuple[int, int] | None = None,
        stop: StopRule | str | Sequence[str] | None = None,
        refit: str | int = "always",
        lease: str | float | None = None,
        distinct: bool = False,
        name: str = "campaign",
    ) -> None:
        settings, parts = make_settings(
            groups, strategy, learner, budget=budget, batch=batch, warmup=warmup, validation=validation, classes=classes,
            population=population, risk=risk, positive=positive, test_labels=test_labels, seed=seed, stop=stop,
            refit=refit, lease=lease, distinct=distinct, by_seed=seed is not None,
        )  # fmt: skip
        self._begin(MemoryLedger(), name, settings, parts)

    @classmethod
    def create(
        cls,
        url: str | Ledger,
        name: str,
        groups: Sequence[str] | None = None,
        strategy: str | Strategy = "optimistic",
        learner: object = "logistic",
        *,
        budget: int,
        lease: str | float | None = "1d",
        **settings: Any,
    ) -> Self:
        """Create a campaign in a database, `sqlite:///file.db` or `postgresql://…`, which is made if it does not exist.

        The settings are those of `Campaign`; `label`, `group`, `id` and `features`: the columns of delivered files; and
        `limits`: what one person may hold through a server, `{"labels": 1000, "lease": "30d", "streams": 50}` unless
        given: labels that a collector's open requests wait for, how long a collector may let one wait, event streams of
        one token or share link.
        """
        # `make_settings` has no defaults for these, so that `__init__` cannot forget to pass one on
        given = {
            "batch": 1, "warmup": None, "validation": 0.5, "classes": None, "population": None, "seed": None, "stop": None,
            "refit": "always", **settings,
        }  # fmt: skip
        try:
            plain, parts = make_settings(
                groups, strategy, learner, budget=budget, lease=lease, **given,
                by_seed=given["seed"] is not None and isinstance(url, MemoryLedger),
            )  # fmt: skip
        except TypeError as error:
            # an unknown keyword is the caller's mistake, not ours
            raise InputError(f"cannot create the campaign: {error}") from None
        check_text(name, "the campaign's name")
        self = cls.__new__(cls)
        ledger = url if isinstance(url, Ledger) else open_ledger(url, create=True)
        self._begin(ledger, name, plain, parts)
        return self

    @classmethod
    def open(
        cls,
        url: str | Ledger,
        name: str,
        *,
        read_only: bool = False,
        strategy: Strategy | None = None,
        learner: object = None,
        risk: OwnRisk | None = None,
        stop: StopRule | None = None,
    ) -> Self:
        """Open an existing campaign; with `read_only`, nothing is changed or blocked.

        If the campaign was created with your own strategy, learner, risk or stopping rule, give that object again.
        """
        ledger = url if isinstance(url, Ledger) else open_ledger(url, read_only=read_only)
        self = cls.__new__(cls)
        self._compose(Log(ledger, name, read_only=read_only))
        parts = parts_of(self._log.state.settings, strategy=strategy, risk=risk, learner=learner, stop=stop)
        try:
            self._log.use(parts)
        except EvenhandError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise LedgerError(f"the settings of {name!r} are damaged: {error!r}; restore a backup") from error
        return self

    def copy(self) -> Self:
        """A copy of this campaign in memory, as it stands: what you try out on it does not change the original.

        It hands out the rows of its pool in an order of its own and can certify nothing.
        """
        ledger = MemoryLedger()
        copy_ledger(self._log.ledger, ledger, [self.name])
        found = type(self).__new__(type(self))
        found._compose(Log(ledger, self.name))
        found._log.use(Parts(found._log.state.settings.copy(), self._log.parts.given))
        placed = [e for e in ledger.everything(found._log.number) if isinstance(e, Example) and e.place is not None]
        found._log.write(lambda state, writer: order_anew(writer, placed))
        return found

    def _begin(self, ledger: Ledger, name: str, settings: Settings, parts: Parts) -> None:
        check_text(name, "the campaign's name")
        with ledger.create(name) as writer:
            CREATED.append(writer, settings, actor=user_name())
        self._compose(Log(ledger, name))
        self._log.use(parts)
        examples = settings["budget"] * (1 - settings["validation"])
        # with groups left to the first pool, `pool` warns once they are known
        if settings["groups"] and (message := forced_warning(parts.strategy, len(settings["groups"]), examples)):
            warnings.warn(message, stacklevel=3)

    def _compose(self, log: Log) -> None:
        self._log = log
        self._intake = Intake(log)
        self._models = Models(log)
        self._chooser = Chooser(log, self._models)

    # ---------------------------------------------------------------- asking

    def ask(self, collector: str | None = None) -> Request:
        """The next request; refits first if examples came since the last fit. Raises `NothingToAsk` with the reason."""
        return self.ask_many(1, collector)[0]

    def ask_many(
        self,
        count: int,
        collector: str | None = None,
        *,
        refit: bool = True,
        once: Once | None = None,
        limited: bool = False,
    ) -> list[Request]:
        """Up to `count` requests at once, spread over groups as if the open ones were already answered.

        `refit=False` decides with the existing scores, for a process that leaves refits to another. A second call with
        the same `once` returns the requests of the first. With `limited`, a collector gets no more than the campaign's
        limit of labels that one may hold.
        """
        return self._chooser.ask(count, collector, refit=refit, once=once, limited=limited)

    def abandon(self, request: Request | int, *, by: str | None = None, once: Once | None = None) -> None:
        """Give up a request: what is outstanding goes back to the budget, what was told stays."""
        self._chooser.abandon(self._own_request(request), by, once)

    def extend(self, request: Request | int, lease: str | float | None, *, by: str | None = None) -> float | None:
        """Let a request wait this long from now on, e.g. `"2d"`; returns the time at which its lease ends."""
        return self._chooser.extend(self._own_request(request), as_seconds(lease), by)

    def retire(self, group: str, back: bool = False, *, by: str | None = None) -> None:
        """Ask for no more examples of this group, which has nothing left to give; with `back`, ask for them again."""
        self._chooser.retire(group, by, back=back)

    # ---------------------------------------------------------------- telling

    def tell(
        self,
        request: Request | int,
        X: Any = None,
        y: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        n: int | None = None,
    ) -> Receipt:
        """Answer a request with labelled rows, all at once or in parts. Never fits.

        An id told before with the same label and features changes nothing; with others it is refused. Without ids, a
        delivery equal to an earlier one of this request changes nothing. All rows are stored or, if one cannot be, none.

        Args:
            request: the request, or its number.
            X: features, one row for every example.
            y: their labels.
            n: the number of rows, in place of the rows, if you train the model yourself; it closes the request.
            ids: the examples' ids; made by the campaign if you give none.
            collector: who collected them.
            partial: store the good rows even if some are refused.
            extra: take more rows than are outstanding, while the budget lasts.
            dry_run: only say what would be stored.
        """
        if (X is None) != (y is None) or (X is None) == (n is None):
            raise InputError("tell either rows, tell(request, X, y), or their number, tell(request, n=...)")
        number = self._own_request(request)
        if n is not None:
            return self._intake.count(number, n, Options(collector, partial, extra), dry_run=dry_run)
        return self.tell_delivery(
            number, Delivery.of(X, y, ids), collector=collector, partial=partial, extra=extra, dry_run=dry_run
        )

    def tell_delivery(
        self,
        request: int,
        delivery: Delivery,
        *,
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Answer a request with rows as they were read from a file."""
        return self._intake.tell(request, delivery, Options(collector, partial, extra), dry_run=dry_run)

    def tell_labels(
        self,
        labels: Mapping[str, object],
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        written: bool = False,
    ) -> Receipt:
        """Tell the labels of pool examples by id, whichever requests they fill. The same label again changes nothing.

        A label that comes after its request's lease is taken while the budget lasts; one for an example that was never
        handed out is refused, unless with `extra`. `written` says that the labels were read from a file.
        """
        if not isinstance(labels, Mapping):
            raise InputError(f"give labels by id, {{id: label}}, not {type(labels).__name__}")
        if collector is not None:
            check_text(collector, "the collector")
        return self._intake.label(labels, Options(collector, partial, extra), written=written, dry_run=dry_run)

    def add(
        self,
        X: Features,
        y: ArrayLike,
        groups: Sequence[str],
        ids: ArrayLike | None = None,
        charge: bool = False,
        *,
        by: str | None = None,
    ) -> Receipt:
        """Bring in labelled data you already have; free unless `charge=True`. It is never evidence for a certificate."""
        return self.add_delivery(Delivery.of(X, y, ids, groups), charge=charge, by=by)

    def add_delivery(
        self,
        delivery: Delivery,
        *,
        charge: bool = False,
        by: str | None = None,
        partial: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Bring in rows as they were read from a file with a group column."""
        return self._intake.add(delivery, Options(by, partial), charge=charge, dry_run=dry_run)

    def tell_losses(
        self, losses: Mapping[str, Sequence[float]], *, by: str | None = None, once: Once | None = None
    ) -> None:
        """Report your own model's mean loss, accuracy and number of validation examples, group by group."""
        self._intake.report_losses(losses, by, once)

    def correct(
        self, id: str | Mapping[str, object], label: object = None, reason: str | None = None, by: str | None = None
    ) -> int:
        """Correct the label of an example, or of several with `{id: label}`, all or none; returns how many changed.

        The first label is kept beside the new one. Counts and example sets change at once, scores at the next refit;
        earlier models, a frozen one included, stay as they were fitted. Reasons and names are kept for good: put no
        personal data in them.
        """
        labels = dict(id) if isinstance(id, Mapping) else {id: label}
        return self._intake.correct(labels, reason, by)

    def correct_written(self, id: str, label: str, reason: str | None = None, by: str | None = None) -> int:
        """Correct a label that is written as text: `0` means class 0 where the classes are numbers."""
        return self._intake.correct({id: label}, reason, by, written=True)

    def correct_file(self, path: str | PathLike[str], reason: str | None = None, by: str | None = None) -> int:
        """Correct the labels in a file with columns for id and label."""
        names, values, frame = self.labels_in(Path(path))
        frame.refuse_skipped()
        return self._intake.correct(dict(zip(names, values, strict=True)), reason, by, written=True)

    def withdraw(
        self, id: str | Sequence[str], reason: str | None = None, refund: bool = False, by: str | None = None
    ) -> int:
        """Take examples back for good: they no longer count; `refund` gives their labels back to the budget."""
        names = [id] if isinstance(id, str | int | np.integer) else list(id)
        return self._intake.withdraw(names, reason, by, refund=refund)

    def erase(self, id: str | Sequence[str], reason: str | None = None, by: str | None = None) -> list[str]:
        """Delete the features and labels of examples from storage, for good; ids, reasons and names stay.

        Returns what may still hold values learned from them: the frozen models in the ledger. Backups, replicas and
        your own files are out of its reach.
        """
        names = [id] if isinstance(id, str | int | np.integer) else list(id)
        self._intake.erase(names, reason, by)
        self._models.forget()
        frozen = self._log.state.frozen
        return [] if frozen is None else [f"frozen model {k}" for k in range(1, frozen["version"] + 1)]

    # ---------------------------------------------------------------- pools

    def pool(
        self,
        data: object,
        id: str | None = "id",
        group: str | Sequence[str] = "group",
        features: Sequence[str] | None = None,
        *,
        text: str | Sequence[str] = (),
        image: str | Sequence[str] = (),
        vector: str | Sequence[str] = (),
        numbers: Sequence[str] = (),
        ignore: Sequence[str] = (),
        missing: Sequence[str] = (),
        exclude: Sequence[str] = (),
        merge_below: int = 0,
        spellings: Spellings = "refuse",
        max_categories: int | None = None,
        use_group_as_feature: bool = False,
        scale: str | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        by: str | None = None,
        notice: Callable[[str], object] | None = None,
        _salt: str | None = None,
    ) -> Pooled:
        """Register examples that are not labelled yet; may be called again with more.

        Args:
            data: a pandas, polars or Arrow table, or the path of a CSV or JSON lines file, a Parquet file or a folder of
                Parquet files.
            id: the column of the ids; None takes the row numbers from 0 up, and then there can be only one pool.
            group: the columns that tell the group; a number may have bins, like `"age:30,60"`.
            features: the columns to learn from; by default those of the settings, or all but id, group and label.
            text, image, vector: columns of these kinds, which are shown to people and not learned from yet.
            numbers: columns such as `$1,000` to read as numbers.
            ignore: columns to leave out altogether.
            missing: words for a missing value, beside the empty cell.
            exclude: groups to leave out, by name.
            merge_below: groups with fewer rows than this are merged into one, called other.
            spellings: groups and labels that differ only by case, blanks or Unicode form are refused (`"refuse"`), or become
                the most frequent of their spellings (`"merge"`).
            max_categories: a column of categories with more values than this is left out; by default 1,000, or another
                value in nearly every row.
            use_group_as_feature: whether to learn from the group columns too.
            scale: how the learner `table` scales numbers, by its training rows: `"standard"` (its default), `"minmax"` or
                `"none"`; the same as `change(learner="table:scale=minmax")`.
            separator: the character between the cells of a CSV file; recognised unless given.
            decimal: the file's decimal mark; a comma is recognised.
            encoding: the file's encoding, UTF-8 unless given.
            by: who registers it.
            notice: is given what was read and what the columns hold, line by line, before anything is stored.

        The order in which the rows of a group are handed out is drawn now, from the system's random numbers, and shown
        nowhere; in a campaign in memory that was given a seed, the seed decides it.

        Rows whose label column has a value are taken in as `add` does. A Parquet file stays where it is and must not
        change; after a change call `pool` again, which registers anew what was not handed out.
        """
        from evenhand.campaign.files import missing_words
        from evenhand.tables.groups import GroupRule
        from evenhand.tables.reading import Format, check_format, is_parquet, read
        from evenhand.tables.schema import Columns

        state, form = self._log.refresh(), Format(separator, decimal, encoding)
        check_format([data], form)
        by_columns = (group,) if isinstance(group, str) else tuple(group)
        label = state.settings["label"]
        named = state.settings["features"] if features is None else features
        columns = Columns.of(
            id=id, groups=by_columns, features=None if named is None else list(named),
            ignore=[i for i in ignore if i != label], numbers=numbers, text=text, image=image, vector=vector, missing=missing,
            decimal=decimal, use_group_as_feature=use_group_as_feature, max_categories=max_categories,
            needs_numbers=self._log.parts.needs_numbers,
        )  # fmt: skip
        words = columns.missing or tuple(missing_words(state.columns))
        rule = GroupRule(by_columns, tuple(exclude), merge_below, spellings == "merge", words)
        frame = read(data, form)
        path = Path(data) if isinstance(data, str | Path) and is_parquet(data) else None
        table = read_pool(
            frame, columns, rule, label=label, earlier=state.columns, is_first=not state.has_rows, path=path
        )
        table = table.like(state)
        _check_learner(table, self._log.parts)
        if notice is not None:
            for line in table.said:
                notice(line)
        scaled = None if scale is None else _scaled(scale, self._log.parts)
        if id is None:
            if state.pool is not None:
                raise InputError(
                    "rows of a second table cannot be told apart by their numbers: name a column of ids, id=..."
                )
            # the rows to label come back as a file with this column
            id = free_name("row", (*frame.schema.names, label))
        found = self._intake.register(table, id, by, _salt)
        if scaled is not None:
            self.change(learner=scaled, by=by)
        # done now, while somebody waits for a long command anyway, and not at the first ask
        fetch_ahead(self._log)
        examples = self.budget * (1 - self._log.state.settings["validation"])
        if not state.groups and (message := forced_warning(self._log.parts.strategy, len(self.groups), examples)):
            warnings.warn(message, stacklevel=2)
        return found

    def skip(self, id: str, reason: str | None = None, by: str | None = None) -> None:
        """Leave out an example that nobody can label: it leaves the pool, and its request shrinks."""
        self._intake.skip(id, reason, by)

    def note_disagreements(self, ids: Sequence[str], by: str) -> None:
        """Record all examples whose answers in a labelling tool now contradict each other; `status` lists them."""
        self._intake.note_disagreements(ids, by)

    # ---------------------------------------------------------------- models

    def refit(self, *, record_failure: bool = False) -> bool:
        """Fit and score if examples came since the last scores; False if not needed or another process refits.

        With `record_failure` a learner that fails is recorded in the ledger instead of raising.
        """
        if self._log.read_only:
            raise InputError(f"the campaign {self.name!r} was opened read-only: open it without read_only to refit")
        return self._models.refit(record_failure=record_failure)

    def model(self) -> Model | None:
        """The model fitted on the training examples as they stand; None before the first."""
        return self._models.model()

    def final_model(self, plain: bool = False) -> FinalModel:
        """The model to deploy: fitted on all training and validation labels, with groups re-weighted where that helps.

        `.choice` says what was compared, what was chosen and why; `plain=True` fits every example alike. Once a model is
        frozen, this is a different model, which has no certificate: `certified_model` is the one that has.
        """
        return self._models.final_model(plain=plain)

    def certify(
        self,
        target: float | None = None,
        *,
        model: object = "final",
        most: int | None = None,
        delta: float | None = None,
        distinct: bool | None = None,
        by: str | None = None,
    ) -> Certificate:
        """Freeze a model: labels that answer requests from now on are evidence about it, which `certificate` sums up.

        With a target, requests are of kind `certify` from then on: they ask for the group whose labels the proof needs
        most, and all their labels are outside the validation share. The proof ends *certified*, *refuted* or *not
        reached*; `ask` then raises `NothingToAsk` with the outcome, until `certify` or `change(stop=...)` is called. A
        second proof of the same model keeps its evidence; a model is frozen anew only if that is expected to take fewer
        labels.

        Args:
            target: the risk that no group may exceed.
            model: `"final"`, what `final_model` returns now; `"current"`, fitted on the training examples; or your own.
            most: labels the proof may take; by default what is left of the budget.
            delta: the largest probability that the certificate is wrong, at most 0.5; version k of the frozen model gets
                δ/(k(k+1)). By default that of the model frozen before, or 0.05; a model that is frozen already can be
                proven with as much confidence or more.
            distinct: your word that every row told without an id is a different example; by default the campaign's
                setting.
            by: who freezes it.
        """
        return self._models.certify(target, model=model, most=most, delta=delta, distinct=distinct, by=by)

    def certificate(self, delta: float | None = None) -> Certificate | None:
        """What is certain about the frozen model now; None if there is none. `delta` is that of `certify` by default."""
        return self._models.certificate(delta)

    def certified_model(self) -> Model | None:
        """The model the certificate is about; None without one."""
        return self._models.certified_model()

    def running(self, delta: float = 0.05) -> Running:
        """The average error in every group of all models so far, as of the last refit."""
        from evenhand.campaign.status import running

        return running(self._log.refresh(), delta)

    # ---------------------------------------------------------------- running it

    def change(self, *, by: str | None = None, **settings: object) -> None:
        """Change `budget`, `learner`, `lease`, `stop`, `refit` or some of the `limits` from here on."""
        changed: list[Parts] = []

        def step(state: State, writer: Writer) -> None:
            changes, parts = check_change(self._log.parts, state.labels_used + state.outstanding, settings)
            changed[:] = [parts]
            CHANGED.append(writer, {"changes": changes}, actor=by)

        # the new objects are put to use before another thread decides anything with the old ones
        with self._log.lock:
            self._log.write(step, still_open=True)
            self._log.use(Parts(self._log.state.settings.copy(), changed[0].given))

    def close(self, reason: str = "closed", *, by: str | None = None, once: Once | None = None) -> None:
        """End the campaign: nothing is asked or accepted any more. `status` then says which model to deploy."""
        facts: Closed = {"reason": reason, "choice": None}
        # choosing takes seconds, so it happens before the write lock is taken; the choice is a
        # fact and is stored, because nobody can refit a campaign whose examples are erased later
        if self._log.refresh().settings["learner"] is not None and self._log.state.closed is None:
            with suppress(EvenhandError):  # no examples yet, or a learner that fails: the campaign ends all the same
                facts["choice"] = self._models.final_model().choice.as_dict()
        with suppress(Repeated):
            self._log.write(lambda state, writer: CLOSED.append(writer, facts, actor=by), still_open=True, once=once)

    # ---------------------------------------------------------------- looking

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self._log.name

    def release(self) -> None:
        """Close the database connections."""
        self._log.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = self._log.state
        return f"<Campaign {self.name!r}: {state.labels_used} of {state.settings['budget']} labels used>"

    @property
    def number(self) -> int:
        """Its number in the database."""
        return self._log.number

    @property
    def state(self) -> State:
        """All that its events add up to, up to now; to be read only."""
        return self._log.refresh()

    @property
    def seen(self) -> State:
        """The same as far as this process has read it, without looking whether more came."""
        return self._log.state

    @property
    def risk(self) -> Risk:
        """What "worse off" means here."""
        return self._log.parts.risk

    def moment(self) -> AbstractContextManager[tuple[Reader, State]]:
        """Look at the ledger at one moment without blocking others: a reader, and a copy of the state."""
        return self._log.moment()

    @property
    def needs_numbers(self) -> bool:
        """Whether the learner fails on text and missing values."""
        return self._log.parts.needs_numbers

    def reading(self) -> AbstractContextManager[Reader]:
        """Read the ledger at one moment."""
        return self._log.reading()

    def settle(self) -> None:
        """Record leases that have ended; any other step does that too."""
        self._log.write(lambda state, writer: None)

    def now(self) -> float:
        """The ledger's time."""
        return self._log.now()

    def refit_due(self, state: State) -> bool:
        """Whether the settings require a refit before the next ask."""
        return self._models.due(state)

    def reason_to_stop(self) -> str | None:
        """Why the stopping rule ends the asking; None if it does not, or if there is none."""
        with self._log.moment() as (reader, state):
            return None if state.settings["stop"] is None else self._models.reason_to_stop(reader, state)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self._log.state.groups)

    @property
    def settings(self) -> JsonObject:
        """The campaign's settings, with all changes since it was created, as plain values."""
        return dict(self._log.refresh().settings)

    @property
    def budget(self) -> int:
        """How many labels may be spent."""
        return self._log.refresh().settings["budget"]

    @property
    def labels_used(self) -> int:
        """Labels charged to the budget so far; those of open requests are not."""
        return self._log.refresh().labels_used

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        with self._log.moment() as (_, state):
            return state.unspent

    @property
    def counts(self) -> dict[str, int]:
        """Training examples per group."""
        state = self._log.refresh()
        return dict(zip(state.groups, state.train, strict=True))

    @property
    def mixture(self) -> dict[str, float]:
        """Each group's share of the training examples."""
        counts = self.counts
        return {group: n / max(sum(counts.values()), 1) for group, n in counts.items()}

    def standing(self, refit: bool = True) -> Standing:
        """What is known per group now; `refit=False` does not bring the model up to date first."""
        # without a refit the standing would show scores of examples that have changed since
        if refit and not self._log.read_only and self._log.state.settings["learner"] is not None:
            self._models.refit()
        return self._chooser.standing(self._log.refresh())

    def training_set(self) -> Examples:
        """The training examples, in the order they came."""
        return self._examples("train")

    def validation_set(self) -> Examples:
        """The validation examples of all groups, in the order they came."""
        return self._examples("validate")

    def test_set(self) -> Examples:
        """The test examples of all groups, in the order they came; no model learns from them."""
        return self._examples("test")

    def _examples(self, role: str) -> Examples:
        from evenhand.campaign.scores import as_examples

        with self._log.moment() as (reader, state):
            return as_examples(state, [row for row in reader.changed() if row.counts and row.role == role])

    def propose(self) -> Proposal:
        """The group, the reason and the size of the request that `ask` would make now; it writes and fits nothing."""
        with self._log.moment() as (reader, state):
            return self._chooser.proposed(state, reader)

    @property
    def open_requests(self) -> list[Request]:
        """Requests that still wait for labels, oldest first."""
        with self._log.moment() as (reader, state):
            asked = [reader.events(kinds=REQUESTS, request=number)[0] for number in state.open]
            return [
                _as_now(request_of(event, state.groups), now)
                for event, now in zip(asked, state.open.values(), strict=True)
            ]

    @property
    def done(self) -> bool:
        """Whether the campaign is over: no request can be made unless settings change or labels are refunded."""
        # an open request may still bring labels, and an abandoned one gives its labels back
        with self._log.moment() as (_, state):
            if state.open:
                return False
        try:
            self.propose()
        except NothingToAsk:
            return True
        except (
            InputError
        ):  # the user's own strategy or rule, which this process was not given: there may be more to ask
            return False
        return False

    def status(self) -> JsonObject:
        """Budget, every group, requests, collectors, scores, and whether there is anything left to ask: plain values."""
        from evenhand.campaign.status import status

        with self._log.moment() as (reader, state):
            return status(
                self.name,
                state,
                reader,
                nothing=self._nothing(state, reader),
                models=self._models,
            )

    def _nothing(self, state: State, reader: Reader) -> str | None:
        """Why nothing can be asked now; None if something can, or if that cannot be known here."""
        try:
            self._chooser.proposed(state, reader)
        except NothingToAsk as nothing:
            return nothing.reason
        except InputError:  # the user's own strategy, which this process was not given
            return None
        return None

    def overview(self) -> JsonObject:
        """A short summary of the campaign: name, labels, examples, events."""
        from evenhand.campaign.status import overview

        return overview(self.name, self._log.refresh())

    def explain(self, r: Request | int | None = None) -> JsonObject:
        """Why a request was made, or by default why the next one would be: the decision, and in `words` a sentence.

        Where nothing can be asked any more, the last request is explained.
        """
        from evenhand.campaign.reasons import explain
        from evenhand.strategies.decision import Decision

        unscored, available = 0, offered(self._log.refresh())
        if r is None:
            try:
                with self._log.moment() as (reader, state):
                    number, decision = None, self._chooser.proposed(state, reader).decision
                    if state.settings["learner"] is not None and decision.kind in ("warm-up", "forced", "score"):
                        unscored = state.examples - state.scored_examples
            except NothingToAsk as nothing:
                if not self._log.state.asked:
                    raise
                found = self.explain(self._log.state.asked)
                return {**found, "words": f"Nothing can be asked ({nothing}). The last request: {found['words']}"}
        else:
            number = self._own_request(r)
            with self._log.reading() as reader:
                asked = reader.events(kinds=REQUESTS, request=number)
            if not asked:
                raise NotFound(f"request {number} was never made")
            decision = Decision.from_dict(self.groups, request_in(asked[0])["decision"])
        return {
            "request": number,
            "decision": decision.as_dict(),
            "words": explain(decision, self._log.parts.risk.title, unscored, available),
        }

    def events(self, after: int = 0, limit: int | None = None) -> list[JsonObject]:
        """The events after number `after`: number, time, kind, request, actor and facts, as plain values."""
        from evenhand.campaign.status import as_event

        after, limit = plain(after), plain(limit)
        if not isinstance(after, int) or not isinstance(limit, int | None):
            raise InputError(f"after and limit are whole numbers, not {after!r} and {limit!r}")
        if after < 0 or (limit is not None and limit < 1):
            raise InputError(f"after must be 0 or more and limit 1 or more, not {after} and {limit}")
        with self._log.reading() as reader:
            return [as_event(event) for event in reader.events(min(after, _MOST), limit=limit and min(limit, _MOST))]

    def verify(self) -> Verification:
        """Check the ledger: replay every event, choose every request again from the recorded scores, check every row."""
        from evenhand.campaign.verification import verify

        return verify(self._log.ledger, self._log.number, self._log.parts)

    # ---------------------------------------------------------------- files

    def read(
        self, data: object, request: Request | int | None = None, *, name: str | None = None
    ) -> tuple[Frame, Delivery]:
        """Read labelled rows for `tell_delivery` or `add_delivery`: a file, its bytes under their `name`, or a frame."""
        from evenhand.campaign.files import as_delivery
        from evenhand.tables.reading import read

        number = None if request is None else self._own_request(request)
        frame = read(data, name=name)
        with self._log.moment() as (reader, state):
            group = None
            if number is not None:
                asked = reader.events(kinds=REQUESTS, request=number)
                if not asked:
                    raise not_open(state, reader, number)
                group = request_in(asked[0])["decision"]["group"]
            return frame, as_delivery(frame, state, needs_numbers=self._log.parts.needs_numbers, group=group)

    def predict_file(self, path: str | PathLike[str]) -> tuple[Frame, list[Label], list[float] | None]:
        """The final model's predictions for the rows in a file: the table, labels, and how sure it is, if known."""
        import numpy as np

        from evenhand.campaign.files import features_in
        from evenhand.tables.reading import read

        # the final model first: without labels there is none, whatever the file holds
        model, frame = self.final_model(), read(Path(path))
        X = features_in(frame, self._log.refresh(), self._log.parts.learner)
        sure = getattr(model, "predict_proba", None)
        chances = None if sure is None else np.asarray(sure(X)).max(axis=1).tolist()
        return frame, np.asarray(model.predict(X)).tolist(), chances

    def ids_in(self, path: str | PathLike[str]) -> list[str]:
        """The ids in a file."""
        from evenhand.campaign.files import ids_in
        from evenhand.tables.reading import read

        frame = read(Path(path))
        frame.refuse_skipped()
        return ids_in(frame, self.settings["id"])

    def labels_in(self, data: object, *, name: str | None = None) -> tuple[list[str], list[object], Frame]:
        """The ids in a file, or in its bytes, their labels (None where a label is missing), and the table."""
        from evenhand.campaign.files import cells, ids_in, missing_words, need_column
        from evenhand.tables.reading import read

        frame, settings = read(data, name=name), self.settings
        need_column(frame, settings["label"], "the label")
        missing = missing_words(self._log.state.columns)
        return ids_in(frame, settings["id"]), cells(frame, settings["label"], missing), frame

    def to_label(
        self, requests: Sequence[Request], show: Sequence[str] | None = None
    ) -> tuple[list[str], list[list[object]]]:
        """The rows of pool requests still to be labelled: column names and rows, an empty column for the label first.

        `show` names the columns to show beside the ids; by default all that the campaign keeps of its rows.
        """
        from evenhand.campaign.examples import schema_of
        from evenhand.ledger.text import from_text
        from evenhand.tables.problems import missing_column

        with self._log.moment() as (reader, state):
            columns, settings = state.columns or {}, state.settings
            found = reader.find([name for request in requests for name in request.examples])
        stored = schema_of(columns).stored
        for name in show or ():
            if name not in stored:
                raise InputError(missing_column(name, stored, "to show"))
        shown = [k for k, name in enumerate(stored) if show is None or name in show]
        ours: list[str] = []
        # the file comes back through `tell`, so our columns must not shadow one of the user's
        for name in ("request", settings["group"]):
            ours.append(free_name(name, (settings["id"], settings["label"], *stored, *ours)))
        names = [settings["label"], settings["id"], *ours, *(stored[k] for k in shown)]
        rows = []
        for request in requests:
            for name in request.examples:
                # a request may be answered in parts: what was told, skipped or withdrawn meanwhile is left out
                if found[name].label is None and found[name].fate is None:
                    values = from_text(str(found[name].features))
                    rows.append([None, name, request.id, request.group, *(values[k] for k in shown)])
        return names, rows

    def labelled(self) -> tuple[list[str], Any, list[tuple[str | None, str, int | None, Label]]]:
        """All labelled examples: ids, a frame of all columns, and the role, group, request and label of each."""
        from evenhand.campaign.examples import decode, schema_of, typed_rows
        from evenhand.campaign.labels import as_label
        from evenhand.tables.stored import as_frame

        with self._log.moment() as (reader, state):
            rows = [row for row in reader.changed() if row.counts]
            kind, columns = state.label_kind, state.columns or {}
        if not rows:
            raise InputError("there are no labelled examples yet: tell some first")
        facts = [(row.role, row.group, row.request, as_label(row.label or "", kind)) for row in rows]
        stored = [row.features for row in rows if row.features]
        table = columns["kind"] == "table"
        frame = as_frame(typed_rows(stored, schema_of(columns))) if table else decode(columns, stored)
        return [row.id for row in rows], frame, facts

    def export(self, path: str | PathLike[str], *, force: bool = False) -> int:
        """Write the data set gathered so far, with ids, groups, roles and labels; returns the number of rows."""
        from evenhand.campaign.export import export

        with self._log.moment() as (reader, state):
            return export(state, reader, Path(path), force=force)

    def report(self) -> str:
        """The campaign as one self-contained HTML page, as the server shows it."""
        from evenhand.campaign.history import History
        from evenhand.campaign.requests import as_time
        from evenhand.campaign.view import view_of
        from evenhand.report.pages import campaign_report

        with self._log.reading() as reader:
            view = view_of(self, History().follow(reader).past())
        return campaign_report(view, str(as_time(view.now)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write this campaign to a ledger file; `Campaign.open(f"sqlite:///{path}", name)` continues from it."""
        from evenhand.campaign.export import save

        save(self._log.ledger, self.name, path)

    def _own_request(self, request: Request | int) -> int:
        """The number of a request of this campaign; that of another campaign may have the same number."""
        number = number_of(request)
        if not isinstance(request, Request):
            return number
        known = self._log.state.waiting(number)
        made = None if known is None else (known["event"], known["group"], known["at"])
        if known is None:  # filled or abandoned since, or another process made it
            with self._log.reading() as reader:
                asked = reader.events(kinds=REQUESTS, request=number)
            made = (asked[0].seq, request_in(asked[0])["decision"]["group"], asked[0].at) if asked else None
        # two campaigns made alike share numbers, events and groups, but not the moment
        mine = (
            None if made is None else (request.event, request.group, made[2] if request.made is None else request.made)
        )
        if made is not None and made != mine:
            raise InputError(
                f"request {number} for {request.group!r} belongs to another campaign: here it is for {made[1]!r}"
            )
        return number


def _as_now(request: Request, now: OpenRequest) -> Request:
    """A request with what has changed since it was made."""
    examples = request.examples if now["left"] is None else tuple(now["left"])
    return replace(request, told=now["told"], until=now["until"], size=now["size"], examples=examples)


def _scaled(scale: str, parts: Parts) -> str | None:
    """The text of the learner with another scale; None where it has it already."""
    from evenhand.learners.parsing import describe_learner
    from evenhand.learners.table import TableLearner

    learner = parts.learner
    if not isinstance(learner, TableLearner):
        raise InputError("scale has no effect: it is for the learner 'table', others take numbers as they are")
    return None if learner.scale == scale else describe_learner(replace(learner, scale=scale))


def _check_learner(table: PoolTable, parts: Parts) -> None:
    """Refuse a pool without the columns that the learner names."""
    from evenhand.learners.columns import check_columns, needs_columns

    learner = parts.learner
    if learner is not None and needs_columns(learner):
        check_columns(learner, table.schema.features, table.schema.left_out)


def campaigns(url: str) -> list[str]:
    """The names of the campaigns in a database."""
    with open_ledger(url, read_only=True) as ledger:
        return list(ledger.campaigns())
