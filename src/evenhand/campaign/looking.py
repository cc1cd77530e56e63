"""Looking at a campaign: what it would ask, what it has, how it stands; nothing here changes it, except refits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from evenhand.arrays import plain
from evenhand.campaign.answering import not_open
from evenhand.campaign.deciding import Proposal, offered
from evenhand.campaign.requests import Request, number_of, request_of
from evenhand.campaign.state import State
from evenhand.campaign.store import CampaignStore
from evenhand.errors import InputError, NotFound, NothingToAsk
from evenhand.ledger import Reader
from evenhand.notation import JsonObject, free_name

if TYPE_CHECKING:
    from evenhand.campaign.deliveries import Delivery
    from evenhand.campaign.labels import Label
    from evenhand.campaign.requests import Examples
    from evenhand.campaign.training import Trainer
    from evenhand.campaign.verify import Verification
    from evenhand.claims.certificates import Certificate, Running
    from evenhand.learners import Model
    from evenhand.learners.choosing import FinalModel
    from evenhand.strategies.standing import Standing
    from evenhand.tables.frame import Frame

__all__ = ["Looking"]

# what every database takes as an integer
_MOST = 2**31 - 1


def _now(facts: JsonObject) -> JsonObject:
    """The facts of an open request that can still change."""
    found = {name: facts[name] for name in ("told", "until", "size")}
    return found | ({"examples": tuple(facts["left"])} if "left" in facts else {})


class Looking:
    """The verbs that look.

    Attributes:
        store: the campaign's ledger and folded state, for tools.
    """

    store: CampaignStore

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.store.name

    def release(self) -> None:
        """Close the database connections."""
        self.store.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = self.store.state
        return f"<Campaign {self.name!r}: {state.labels_used} of {state.settings['budget']} labels used>"

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.store.state.groups)

    @property
    def settings(self) -> JsonObject:
        """The campaign's settings, with all changes since it was created, as plain values."""
        return dict(self.store.refresh().settings)

    @property
    def budget(self) -> int:
        """How many labels may be spent."""
        return int(self.store.refresh().settings["budget"])

    @property
    def labels_used(self) -> int:
        """Labels charged to the budget so far; those of open requests are not."""
        return self.store.refresh().labels_used

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        with self.store.moment() as (_, state):
            return state.unspent

    @property
    def counts(self) -> dict[str, int]:
        """Training examples per group."""
        state = self.store.refresh()
        return dict(zip(state.groups, state.train, strict=True))

    @property
    def mixture(self) -> dict[str, float]:
        """Each group's share of the training examples."""
        counts = self.counts
        return {group: n / max(sum(counts.values()), 1) for group, n in counts.items()}

    def standing(self, refit: bool = True) -> Standing:
        """What is known per group now; `refit=False` does not bring the model up to date first."""
        # without a refit the standing would show scores of examples that have changed since
        if refit and not self.store.read_only and self.store.state.settings["learner"] is not None:
            self.store.trainer_now().refit()
        return self.store.chooser.standing(self.store.refresh())

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
        from evenhand.campaign.fitting import as_examples

        with self.store.moment() as (reader, state):
            return as_examples(state, [row for row in reader.changed() if row.counts and row.role == role])

    def model(self) -> Model | None:
        """The model fitted on the training examples as they stand; None before the first."""
        return self.store.trainer_now().model()

    def final_model(self, plain: bool = False) -> FinalModel:
        """The model to deploy: fitted on all training and validation labels, with groups re-weighted where that helps.

        `.choice` says what was compared, what was chosen and why; `plain=True` fits every example alike. Once a model is
        frozen, this is a different model, which has no certificate: `certified_model` is the one that has.
        """
        return self.store.trainer_now().final_model(plain=plain)

    def certificate(self, delta: float | None = None) -> Certificate | None:
        """What is certain about the frozen model now; None if there is none. `delta` is that of `certify` by default."""
        return self.store.trainer_now().certifier.certificate(delta)

    def certified_model(self) -> Model | None:
        """The model the certificate is about; None without one."""
        return self.store.trainer_now().certifier.certified_model()

    def running(self, delta: float = 0.05) -> Running:
        """The average error in every group of all models so far, as of the last refit."""
        from evenhand.campaign.status import running

        return running(self.store.refresh(), delta)

    def status(self) -> JsonObject:
        """Budget, every group, requests, collectors, scores, and whether there is anything left to ask: plain values."""
        from evenhand.campaign.status import status

        with self.store.moment() as (reader, state):
            return status(
                self.name,
                state,
                reader,
                nothing=self._nothing(state, reader),
                trainer=self._claims(state),
                failure=self.store.last_failure,
            )

    def _nothing(self, state: State, reader: Reader) -> str | None:
        """Why nothing can be asked now; None if something can, or if that cannot be known here."""
        try:
            self.store.proposed(state, reader)
        except NothingToAsk as nothing:
            return nothing.reason
        except InputError:  # the user's own strategy, which this process was not given
            return None
        return None

    def _claims(self, state: State) -> Trainer | None:
        """The trainer, which knows the frozen model and the stopping rule; None where the campaign has neither."""
        return None if state.frozen is None and state.settings["stop"] is None else self.store.trainer

    def overview(self) -> JsonObject:
        """A short summary of the campaign: name, labels, examples, events."""
        from evenhand.campaign.status import overview

        return overview(self.name, self.store.refresh())

    def explain(self, r: Request | int | None = None) -> JsonObject:
        """Why a request was made, or by default why the next one would be: the decision, and in `words` a sentence.

        Where nothing can be asked any more, the last request is explained.
        """
        from evenhand.campaign.words import explain
        from evenhand.strategies.decision import Decision

        unscored, available = 0, offered(self.store.refresh())
        if r is None:
            try:
                with self.store.moment() as (reader, state):
                    number, decision = None, self.store.proposed(state, reader).decision
                    if state.settings["learner"] is not None and decision.kind in ("warm-up", "forced", "score"):
                        unscored = state.examples - state.scored_examples
            except NothingToAsk as nothing:
                if not self.store.state.asked:
                    raise
                found = self.explain(self.store.state.asked)
                return {**found, "words": f"Nothing can be asked ({nothing}). The last request: {found['words']}"}
        else:
            number = self._own_request(r)
            with self.store.ledger.reading(self.store.number) as reader:
                asked = reader.events(kinds=("asked",), request=number)
            if not asked:
                raise NotFound(f"request {number} was never made")
            decision = Decision.from_dict(self.groups, asked[0].facts["decision"])
        return {
            "request": number,
            "decision": decision.as_dict(),
            "words": explain(decision, self.store.parts.risk.title, unscored, available),
        }

    def _own_request(self, request: Request | int) -> int:
        """The number of a request of this campaign; that of another campaign may have the same number."""
        number = number_of(request)
        if not isinstance(request, Request):
            return number
        state = self.store.state
        known = state.open.get(number) or state.expired.get(number)
        made = None if known is None else (known["event"], known["group"])
        if known is None:  # filled or abandoned since, or another process made it
            with self.store.ledger.reading(self.store.number) as reader:
                asked = reader.events(kinds=("asked",), request=number)
            made = (asked[0].seq, asked[0].facts["decision"]["group"]) if asked else None
        if made is not None and made != (request.event, request.group):
            raise InputError(
                f"request {number} for {request.group!r} belongs to another campaign: here it is for {made[1]!r}"
            )
        return number

    def events(self, after: int = 0, limit: int | None = None) -> list[JsonObject]:
        """The events after number `after`: number, time, kind, request, actor and facts, as plain values."""
        from evenhand.campaign.status import as_event

        after, limit = plain(after), plain(limit)
        if not isinstance(after, int) or not isinstance(limit, int | None):
            raise InputError(f"after and limit are whole numbers, not {after!r} and {limit!r}")
        if after < 0 or (limit is not None and limit < 1):
            raise InputError(f"after must be 0 or more and limit 1 or more, not {after} and {limit}")
        with self.store.ledger.reading(self.store.number) as reader:
            return [as_event(event) for event in reader.events(min(after, _MOST), limit=limit and min(limit, _MOST))]

    def verify(self) -> Verification:
        """Check the ledger: replay every event, refit every score, choose every request again, check every row."""
        from evenhand.campaign.verify import verify

        return verify(self.store.ledger, self.store.number, self.store.parts)

    def read(
        self, data: object, request: Request | int | None = None, *, name: str | None = None
    ) -> tuple[Frame, Delivery]:
        """Read labelled rows for `tell_delivery` or `add_delivery`: a file, its bytes under their `name`, or a frame."""
        from evenhand.campaign.intake import as_delivery
        from evenhand.tables.reading import read

        number = None if request is None else self._own_request(request)
        frame = read(data, name=name)
        with self.store.moment() as (reader, state):
            group = None
            if number is not None:
                asked = reader.events(kinds=("asked",), request=number)
                if not asked:
                    raise not_open(state, reader, number)
                group = asked[0].facts["decision"]["group"]
            return frame, as_delivery(frame, state, needs_numbers=self.store.parts.needs_numbers, group=group)

    def predict_file(self, path: str | PathLike[str]) -> tuple[Frame, list[Label], list[float] | None]:
        """The final model's predictions for the rows in a file: the table, labels, and how sure it is, if known."""
        import numpy as np

        from evenhand.campaign.intake import features_in
        from evenhand.tables.reading import read

        # the final model first: without labels there is none, whatever the file holds
        model, frame = self.final_model(), read(Path(path))
        X = features_in(frame, self.store.refresh(), self.store.parts.learner)
        sure = getattr(model, "predict_proba", None)
        chances = None if sure is None else np.asarray(sure(X)).max(axis=1).tolist()
        return frame, np.asarray(model.predict(X)).tolist(), chances

    def ids_in(self, path: str | PathLike[str]) -> list[str]:
        """The ids in a file."""
        from evenhand.campaign.intake import ids_in
        from evenhand.tables.reading import read

        frame = read(Path(path))
        frame.refuse_skipped()
        return ids_in(frame, self.settings["id"])

    def labels_in(self, data: object, *, name: str | None = None) -> tuple[list[str], list[object], Frame]:
        """The ids in a file, or in its bytes, their labels (None where a label is missing), and the table."""
        from evenhand.campaign.intake import cells, ids_in, missing_words, need_column
        from evenhand.tables.reading import read

        frame, settings = read(data, name=name), self.settings
        need_column(frame, settings["label"], "the label")
        missing = missing_words(self.store.state.columns)
        return ids_in(frame, settings["id"]), cells(frame, settings["label"], missing), frame

    def to_label(
        self, requests: Sequence[Request], show: Sequence[str] | None = None
    ) -> tuple[list[str], list[list[object]]]:
        """The rows of pool requests still to be labelled: column names and rows, an empty column for the label first.

        `show` names the columns to show beside the ids; by default all that the campaign keeps of its rows.
        """
        from evenhand.campaign.features import schema_of
        from evenhand.ledger.text import from_text
        from evenhand.tables.problems import missing_column

        with self.store.moment() as (reader, state):
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

    def labelled(self) -> tuple[list[str], Any, list[Any]]:
        """All labelled examples: ids, a frame of all columns, and the role, group, request and label of each."""
        from evenhand.campaign.features import decode, schema_of, typed_rows
        from evenhand.campaign.labels import as_label
        from evenhand.tables.stored import as_frame

        with self.store.moment() as (reader, state):
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

        with self.store.moment() as (reader, state):
            return export(state, reader, Path(path), force=force)

    def report(self) -> str:
        """The campaign as one self-contained HTML page, as the server shows it."""
        from evenhand.campaign.history import History
        from evenhand.campaign.requests import as_time
        from evenhand.campaign.viewing import view_of
        from evenhand.report.pages import campaign_report

        with self.store.ledger.reading(self.store.number) as reader:
            view = view_of(self, History().follow(reader).past())
        return campaign_report(view, str(as_time(view.now)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write this campaign to a ledger file; `Campaign.open(f"sqlite:///{path}", name)` continues from it."""
        from evenhand.campaign.files import save

        save(self.store.ledger, self.name, path)

    def propose(self) -> Proposal:
        """The group, the reason and the size of the request that `ask` would make now; it writes and fits nothing."""
        with self.store.moment() as (reader, state):
            return self.store.proposed(state, reader)

    @property
    def open_requests(self) -> list[Request]:
        """Requests that still wait for labels, oldest first."""
        with self.store.moment() as (reader, state):
            asked = [reader.events(kinds=("asked",), request=number)[0] for number in state.open]
            return [
                replace(request_of(event, state.groups), **_now(facts))
                for event, facts in zip(asked, state.open.values(), strict=True)
            ]

    @property
    def done(self) -> bool:
        """Whether the campaign is over: no request can be made unless settings change or labels are refunded."""
        # an open request may still bring labels, and an abandoned one gives its labels back
        with self.store.moment() as (_, state):
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
