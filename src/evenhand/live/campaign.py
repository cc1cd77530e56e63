"""The live campaign: every step reads the ledger, decides, and is written down."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.campaign import Campaign
from evenhand.certificates import Certificate, Evidence, Running
from evenhand.learners import Model
from evenhand.ledger import Draft, Event, Ledger, State, Step, Writer
from evenhand.live import evidence
from evenhand.live.choosing import Chooser
from evenhand.live.delivery import Checker, Told, plain
from evenhand.live.dense import pack
from evenhand.live.fitting import Fitter
from evenhand.live.parcel import Parcel
from evenhand.live.receipts import LiveReceipt, LiveRequest
from evenhand.live.replay import as_asked, restore
from evenhand.live.settings import check_change, make_campaign
from evenhand.live.stopping import reason_to_stop, wants_frozen
from evenhand.live.training import Trainer
from evenhand.request import NothingToAsk, Request

__all__ = ["LiveCampaign"]

_POLL_SECONDS = 0.05


class LiveCampaign:
    """A campaign kept in a ledger: the same questions and answers as `Campaign`, from many processes at once.

    Each step takes the campaign's write lock, folds the events that came since, decides, and appends; what it returned
    is stored. Fitting happens outside any transaction, in one process at a time.

    Args:
        ledger: where the campaign is kept.
        name: its name there.
        clock: gives the time in seconds, for leases.
    """

    def __init__(self, ledger: Ledger, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self.ledger, self.name, self.clock = ledger, name, clock
        self.number = ledger.find(name)
        self._lock = threading.RLock()
        self._state = ledger.state(self.number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once, when the campaign was created
            self._campaign = make_campaign(self._state.settings)
        self._chooser = Chooser(self._campaign)
        self._trainer = Trainer(ledger, self.number)
        self._check: Checker | None = None

    # ---------------------------------------------------------------- asking

    def ask(self, collector: str | None = None) -> LiveRequest:
        """The next request; raises `NothingToAsk` with its reason."""
        return self.ask_many(1, collector)[0]

    def ask_many(self, count: int, collector: str | None = None) -> list[LiveRequest]:
        """Up to `count` requests at once, spread over groups; stored together."""
        if self._state.settings["refit"] != "background":
            self._bring_scores_up()

        found: list[Request] = []

        def step(state: State, writer: Writer) -> list[Draft]:
            now, lease = self.clock(), state.settings["lease"]
            overdue = state.overdue(now)
            found[:] = self._proposed(state, count, overdue)
            facts = {
                "until": None if lease is None else now + lease,
                "by": collector,
                "rests_on": max(state.rests_on),
                "scored_at": state.scored_at,
                "behind": state.examples - state.scored_labels,
            }
            drafts = [Draft("expired", {}, number) for number in overdue]
            return drafts + [_asked(request, facts) for request in found]

        asked = [event for event in self._write(step) if event.kind == "asked"]
        return [as_asked(request, event) for request, event in zip(found, asked, strict=True)]

    def propose(self) -> Request:
        """The request that `ask` would make of the scores there are; nothing is written nor fitted."""
        with self._lock:
            state = self.refresh()
            return self._proposed(state, 1, state.overdue(self.clock()))[0]

    def abandon(self, request: Request | int) -> None:
        """Give up a request; its labels go back to the budget."""
        number = _number(request)

        def step(state: State, writer: Writer) -> list[Draft]:
            if number not in state.open:
                raise _not_open(number, writer.about(number), state)
            return [Draft("abandoned", {}, number)]

        self._write(step, still_open=True)

    # ---------------------------------------------------------------- telling

    def tell(
        self,
        request: Request | int,
        X: Any = None,
        y: Any = None,
        *,
        n: int | None = None,
        collector: str | None = None,
    ) -> LiveReceipt:
        """Answer a request with labelled rows, or with their number where somebody else trains. Never fits.

        The same delivery told twice changes nothing; another one for the same request is refused. After its lease a
        delivery is taken while its rows fit in what is unspent.
        """
        if (X is None) != (y is None) or (X is None) == (n is None):
            raise ValueError("tell either rows, tell(request, X, y), or their number, tell(request, n=...)")
        if n is not None:
            return self._deliver(Told(_number(request), int(n), None, collector, True))
        return self.tell_parcel(request, pack(*plain(X, y)), collector=collector)

    def tell_parcel(self, request: Request | int, parcel: Parcel, *, collector: str | None = None) -> LiveReceipt:
        """Answer a request with a table as it was read from a file."""
        return self._deliver(Told(_number(request), len(parcel), parcel, collector, True))

    def add(self, X: Any, y: Any, groups: Sequence[str], *, charge: bool = False) -> LiveReceipt:
        """Bring in labelled data you already have; free unless `charge=True`. The same data twice changes nothing."""
        X, labels = plain(X, y)
        if len(groups) != len(labels):
            raise ValueError(f"{len(labels)} rows but {len(groups)} groups: give one group per row")
        return self.add_parcel(Parcel.of(X, labels, groups), charge=charge)

    def add_parcel(self, parcel: Parcel, *, charge: bool = False) -> LiveReceipt:
        """Bring in a table that has a group column."""
        return self._deliver(Told(None, len(parcel), parcel, None, charge))

    def tell_losses(self, losses: Mapping[str, tuple[float, float, int]]) -> None:
        """Report your own model's mean loss, accuracy and number of validation examples, group by group."""

        def step(state: State, writer: Writer) -> list[Draft]:
            if state.settings["learner"] is not None:
                raise ValueError("this campaign has a learner and scores by itself: create it without one to report")
            campaign = restore(self._campaign, state)
            campaign.tell_losses(losses)
            sums = dict(zip(campaign.groups, campaign._engine.loss_sum[0].tolist(), strict=True))
            groups = {
                group: {"n": int(n), "loss_sum": sums[group], "accuracy": float(right)}
                for group, (_, right, n) in losses.items()
            }
            return [Draft("losses", {"groups": groups})]

        self._write(step, still_open=True)

    # ---------------------------------------------------------------- running it

    def change(self, **settings: Any) -> None:
        """Change `budget`, `refit`, `lease` or `stop` from here on."""

        def step(state: State, writer: Writer) -> list[Draft]:
            return [Draft("changed", check_change(state.settings, state.labels_used, settings))]

        self._write(step, still_open=True)

    def retire(self, group: str, *, back: bool = False) -> None:
        """Ask no more of this group, it has nothing left to give; or, with `back`, ask of it again."""
        self._campaign._index(group)

        def step(state: State, writer: Writer) -> list[Draft]:
            rest = [g for g in state.unavailable if g != group]
            return [Draft("changed", {"unavailable": rest if back else [*rest, group]})]

        self._write(step, still_open=True)

    def close(self, reason: str = "closed") -> None:
        """End the campaign: nothing is asked or accepted any more."""
        self._write(lambda state, writer: [Draft("closed", {"reason": reason})], still_open=True)

    def refit_due(self) -> bool:
        """Whether the settings want a refit before the next ask."""
        state = self.refresh()
        policy = state.settings["refit"]
        needed = getattr(self._campaign.strategy, "needs_scores", True) or state.settings.get("stop")
        idle = state.settings["learner"] is None or not state.fresh or state.closed is not None
        if not needed or idle or policy == "background":
            return False
        return bool(policy == "always" or state.examples - state.scored_labels >= policy)

    def refit(self) -> bool:
        """Fit and score if examples came since the last scores; False if there is nothing to do or another is at it."""
        with self._trainer.alone() as mine:
            state = self._copy()
            if not mine or state.settings["learner"] is None or not state.fresh or state.closed is not None:
                return False
            header = self._trainer.scores(state)

            def step(now: State, writer: Writer) -> list[Draft]:
                return [Draft("scored", header)] if now.rests_on == state.rests_on and now.closed is None else []

            done = bool(self._write(step))
            if done and wants_frozen(self._state, self.clock()):
                self._freeze(self._trainer.certifying(state))
            return done

    def certify(self) -> Certificate:
        """Freeze the newest model: validation examples told from now on are evidence on it, counted at every refit.

        Fits first if examples came since. Version k is given δ/(k(k+1)), so freeze rarely.
        """
        fitter = self._trainer.certifying(self._state)
        self.refit()
        return self._freeze(fitter)

    # ---------------------------------------------------------------- looking

    def running(self, delta: float = 0.05) -> Running:
        """On the models so far: their average error in every group, as of the last refit."""
        return evidence.running(self.refresh(), delta)

    def certificate(self, delta: float = 0.05) -> Certificate | None:
        """On the frozen model, as of the last refit; None if there is none."""
        return evidence.certificate(self.refresh(), delta)

    def frozen_model(self) -> Model | None:
        """The model the certificate is about; None without one, or where it cannot be rebuilt exactly."""
        found = self._trainer.frozen(self._copy())
        return None if found is None else found.model

    def refresh(self) -> State:
        """The state, with the events that came since folded in."""
        with self._lock:
            return self.ledger.state(self.number, self._state)

    def campaign(self) -> Campaign:
        """The campaign as it stands, to look at: counts, mixture, standing; what you do to it is not written down."""
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return restore(make_campaign(self._state.settings), self.refresh())

    def first_delivery(self) -> Parcel | None:
        """The first rows there are, whose columns later ones must have."""
        first = self.refresh().first_rows
        return Parcel.from_bytes(self.ledger.rows(self.number, first - 1, first)[first]) if first else None

    def model(self) -> Model | None:
        """The model fitted on the training examples there are now; None before the first."""
        return self._trainer.model(self._copy())

    def final_model(self) -> Model:
        """The learner fitted on every label, training and validation together: what to deploy."""
        return self._trainer.final_model(self._copy())

    # ---------------------------------------------------------------- within

    def _write(self, step: Step, *, still_open: bool = False) -> list[Event]:
        """Under the campaign's write lock: fold what others wrote, decide, append; what came back is stored."""

        def in_time(state: State, writer: Writer) -> Sequence[Draft]:
            self._refuse_closed(state)
            return step(state, writer)

        with self._lock:
            return self.ledger.write(self.number, self._state, in_time if still_open else step)

    def _freeze(self, fitter: Fitter) -> Certificate:
        state = self._copy()
        rests_on = max(state.rests_on)
        self._trainer.model_at(fitter, state, rests_on)
        again, scores = fitter.errors(), zip(state.groups, state.scored, state.accuracy, strict=True)
        if again != {group: [n, n - round((right or 0) * n)] for group, n, right in scores}:
            raise ValueError("fitted again, the learner gives another model, so none can be frozen: fix its randomness")
        facts = {"rests_on": rests_on, "learner": fitter.digest, "errors": again}

        def step(now: State, writer: Writer) -> list[Draft]:
            version = 1 + (now.frozen["version"] if now.frozen else 0)
            return [Draft("certified", {"version": version, "labels": now.labels_used, **facts})]

        version = self._write(step, still_open=True)[0].header["version"]
        return Evidence(tuple(state.groups)).certificate(version)

    def _proposed(self, state: State, count: int, overdue: list[int]) -> list[Request]:
        if state.closed is not None:
            raise NothingToAsk("closed")
        if reason_to_stop(state, self.clock()):
            raise NothingToAsk("stopping rule")
        return self._chooser.requests(state, count, gone=overdue)

    def _deliver(self, told: Told) -> LiveReceipt:
        if told.size < 1:
            raise ValueError("an empty delivery: tell at least one row, or abandon the request")
        if told.parcel is not None:
            told = told.checked(self._checker())
        elif self._state.settings["learner"] is not None:
            raise ValueError("this campaign has a learner, which needs the rows: tell(request, X, y)")
        number, before = told.request, list[Event]()
        first_seen = self._check is not None and self._check.first is not None

        def step(state: State, writer: Writer) -> list[Draft]:
            nonlocal told
            if told.parcel is not None and state.first_rows and not first_seen:
                first = Parcel.from_bytes(writer.rows(state.first_rows))  # another's first delivery was quicker
                told = told.checked(Checker(state.settings, first)).sealed()
            if (event := _before(told, state, writer)) is not None:
                before[:] = [event]
                return []
            self._refuse_closed(state)
            if number is not None and number not in state.open and number not in state.expired:
                raise _not_open(number, writer.about(number), state)
            return [told.draft(self._campaign._engine, state)]

        told = told.sealed()
        events = self._write(step)
        return told.receipt((events or before)[0], repeated=not events)

    def _refuse_closed(self, state: State) -> None:
        if state.closed is not None:
            raise ValueError(f"the campaign {self.name!r} is closed ({state.closed}): it takes nothing any more")

    def _checker(self) -> Checker:
        if self._check is None or (self._check.first is None and self.refresh().first_rows):
            self._check = Checker(self._state.settings, self.first_delivery())
        return self._check

    def _bring_scores_up(self) -> None:
        """Refit where the settings want it before an ask; waits while another process does."""
        wanted = max(self.refresh().arrived)
        while self.refit_due() and max(self._state.rests_on) < wanted:
            if not self.refit():
                time.sleep(_POLL_SECONDS)

    def _copy(self) -> State:
        with self._lock:
            return self.refresh().copy()


def _number(request: Request | int) -> int:
    return request.id if isinstance(request, Request) else int(request)


def _asked(request: Request, facts: dict[str, Any]) -> Draft:
    why = request.decision.as_dict()
    made = {"group": why["group"], "kind": why["kind"], "size": request.size, "validating": request.validating}
    return Draft("asked", {**made, **facts}, request.id, why)


def _before(told: Told, state: State, writer: Writer) -> Event | None:
    """The same delivery, if it was told before; an error if the request was answered with another one."""
    if told.request is None:
        return next((e for e in writer.added() if told.is_in(e)), None)
    if told.request in state.open:
        return None
    found = next((e for e in writer.about(told.request) if e.kind == "told"), None)
    if found is not None and not told.is_in(found):
        raise ValueError(f"request {told.request} was answered with other data: ask for a new one, or add the rows")
    return found


def _not_open(number: int, events: list[Event], state: State) -> ValueError:
    words = {"told": "was answered", "abandoned": "was abandoned", "expired": "has expired"}
    fate = words.get(events[-1].kind, "is not open") if events else "was never made"
    return ValueError(f"request {number} {fate}; open are {', '.join(map(str, state.open)) or 'none'}")
