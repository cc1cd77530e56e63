"""What to ask next: the standing, the strategy's choice, the requests and which rows they name."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from evenhand.campaign.events import ABANDONED, ASKED, EXTENDED, NAMED, REQUESTS, RETIRED, Asked, Named
from evenhand.campaign.labels import check_text
from evenhand.campaign.log import Log, Once
from evenhand.campaign.models import Models
from evenhand.campaign.pool import assign, fetch, fetch_ahead
from evenhand.campaign.requests import Proposal, Request, not_open, offered, request_of, returned, why_nothing
from evenhand.campaign.settings import Limits, Parts
from evenhand.campaign.state import LETTERS, OpenRequest, State
from evenhand.errors import InputError, NothingToAsk, Repeated
from evenhand.ledger import Event, Reader, Writer
from evenhand.strategies.base import TEST, UNIFORMS, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing, request_size
from evenhand.strategies.trend import RunningTrend
from evenhand.uniforms import CHOICES, Uniforms

_POLL_SECONDS = 0.05


class Decider:
    """Decides the requests of one campaign from its state alone; it keeps nothing but its random numbers."""

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self._parts = parts
        self._groups = tuple(settings["groups"])
        seed, trial = int(settings["seed"]), settings["trial"]
        # the random numbers are those of the engine, so that a campaign
        # equals a trial of a simulation choice by choice
        self._uniforms = Uniforms(seed, CHOICES, np.array([trial]), UNIFORMS)
        share = settings["population"]
        self._population = None if share is None else np.array(share, dtype=float)

    def standing(self, state: State, *, trend: bool = True) -> Standing:
        """What is known per group; labels that open requests wait for count as told."""
        # outstanding labels count as if they had come, so that ten collectors are not all sent to the same group;
        # which of them will validate is known already, because roles depend on an example's place alone
        waiting, m = np.array(state.promised), len(self._groups)
        validating = np.zeros(m, dtype=np.int64)
        for z in np.flatnonzero(waiting).tolist():
            validating[z] = self._parts.roles(z, state.dealt[z], int(waiting[z])).sum()
        training, held, _ = np.array(state.held)
        accuracies = np.full((m, state.settings["window"]), np.nan)
        for z, values in enumerate(state.recent):
            accuracies[z, : len(values)] = values
        available = np.array(offered(state))
        scored = np.array(state.scored)
        # one array for both where the risk is about every
        # example: `Standing` then knows that nothing is left out
        relevant = scored if state.relevant == state.scored else np.array(state.relevant)
        # test and certify requests are no rounds of the rule, so they do not use up its warm-up
        warming_up = state.asked - state.asked_outside < (state.settings["warmup"] or 0)
        return Standing.of(
            self._groups,
            counts=np.array(state.train),
            told=np.array(state.train) + np.array(state.validate),
            pending=waiting - validating + training,
            pending_validation=validating + held,
            scored=scored,
            relevant=relevant,
            loss_sum=np.array(state.loss_sum),
            accuracies=accuracies,
            trend=RunningTrend.of(accuracies).trend if trend else np.zeros(m),
            available=available,
            warming_up=np.array(warming_up),
            population=self._population,
            batch=state.settings["batch"],
        )

    def propose(self, state: State) -> Proposal:
        """The next request, as if the open ones were already answered: test labels, then a certify phase, then the rule."""
        size = int(request_size(state.settings["batch"], state.unspent))
        if (reason := why_nothing(state, size)) is not None:
            raise NothingToAsk(reason)
        # drawn by the number of requests, so that the choice does
        # not depend on how labels were cut into deliveries
        uniforms = self._uniforms.at(np.array([state.asked]))[0]
        if (test := self._test(state, float(uniforms[0]))) is not None:
            return test
        # the user asked for the proof and has the answer; one
        # that a stopping rule began lets the campaign go on
        if state.outcome is not None and not state.outcome["by_rule"]:
            further = "certify(target=...) begins another proof, change(stop=None) goes on collecting"
            raise NothingToAsk(state.outcome["outcome"], f"{state.outcome['why']}; {further}")
        if state.proving is not None:
            # imported here: it needs SciPy, which an ask without a proof does not wait for
            from evenhand.campaign.proof import choose

            return self._sized(state, choose(state, self._groups, np.array(offered(state)), uniforms), size)
        standing = self.standing(state, trend=self._parts.needs.trend)
        return self._sized(state, Decision.checked(self._parts.strategy(standing, uniforms)), size)

    def _test(self, state: State, uniform: float) -> Proposal | None:
        """A request for planned test labels, which come first, equally many of each group; None when all are out."""
        wanted, m = state.settings["test_labels"], len(self._groups)
        if not wanted:
            return None
        # equally many of each group whatever the mixture: the worst
        # group's interval is as wide as its test set is small
        quota = wanted // m + (np.arange(m) < wanted % m)
        lacking = np.where(offered(state), quota - np.array(state.test) - np.array(state.held[2]), 0)
        if not (lacking > 0).any():
            return None
        index = pick(lacking, lacking > 0, np.asarray(uniform))
        decision = Decision(self._groups, index, np.array(TEST), {"lacking": lacking.astype(float)})
        return self._sized(
            state, decision, min(int(request_size(state.settings["batch"], state.unspent)), int(lacking[index]))
        )

    def _sized(self, state: State, decision: Decision, size: int) -> Proposal:
        """A request for what the group's pool can give."""
        return Proposal(decision, size if state.pool is None else min(size, state.pool[int(decision.index)]))


class Chooser:
    """Makes the requests of one campaign, gives them up and extends them.

    Args:
        log: where requests are kept.
        models: who is asked for scores, and for what a proof lacks.
    """

    def __init__(self, log: Log, models: Models) -> None:
        self._log, self._models = log, models
        self._made: tuple[Parts, Decider] | None = None

    @property
    def _decider(self) -> Decider:
        """The decider for the settings as they are now."""
        parts = self._log.parts
        if self._made is None or self._made[0] is not parts:
            self._made = parts, Decider(parts)
        return self._made[1]

    def standing(self, state: State) -> Standing:
        """What is known per group."""
        return self._decider.standing(state)

    def proposed(self, state: State, reader: Reader) -> Proposal:
        """The next request; raises `NothingToAsk` with the reason."""
        size = int(request_size(state.settings["batch"], state.unspent))
        # these two hold whatever the stopping rule says, and a
        # closed campaign need not load what the rule rests on
        if (reason := why_nothing(state, size)) in ("closed", "groups used up"):
            raise NothingToAsk(str(reason))
        if state.settings["stop"] is not None and self._models.reason_to_stop(reader, state):
            raise NothingToAsk("stopping rule")
        return self._decider.propose(state)

    # ---------------------------------------------------------------- requests

    def ask(self, count: int, collector: str | None, *, refit: bool, once: Once | None, limited: bool) -> list[Request]:
        """Up to `count` requests at once, spread over groups as if the open ones were already answered."""
        if count < 1:
            raise InputError(f"ask for 1 request or more, not {count}")
        if collector is not None:
            check_text(collector, "the collector")
        # fits, evidence and rows of files come first and outside
        # the write lock: under it nobody else can tell or ask
        if refit:
            self._bring_scores_up()
        self._weigh()
        fetch_ahead(self._log, 2 * self._log.state.settings["batch"] * count)

        def step(state: State, writer: Writer) -> None:
            # only the first one asks the stopping rule: no label can come between these requests
            proposal = self.proposed(state, writer)
            room = _Room(state, collector if limited else None)
            room.take(proposal.size)
            # each request is decided as if the ones before it had been made, which is what asks
            # one after another would do; the copy keeps this what-if out of the shared state
            state = state.copy() if count > 1 else state
            for _ in range(count - 1):
                state.fold([self._asked(state, writer, proposal, collector)])
                try:
                    proposal = self._decider.propose(state)
                    room.take(proposal.size)
                except NothingToAsk:
                    return
            self._asked(state, writer, proposal, collector)

        try:
            events = self._log.write(step, once=once)
        except Repeated as repeated:
            first, last = repeated.events
            with self._log.reading() as reader:
                events = reader.events(first - 1, limit=last - first + 1)
        return [request_of(event, tuple(self._log.state.groups)) for event in events if event.kind in REQUESTS]

    def _asked(self, state: State, writer: Writer, proposal: Proposal, collector: str | None) -> Event:
        """Record a request and, with a pool, which examples it names."""
        lease, number = state.settings["lease"], state.asked + 1
        facts: Asked = {
            "decision": proposal.decision.as_dict(),
            "size": proposal.size,
            "until": None if lease is None else writer.now + lease,
            # recorded because `verify` has to choose again from the scores of that moment
            "rests_on": state.scores_rest_on,
            "scored_at": state.scored_at,
            "behind": state.examples - state.scored_examples,
        }
        if state.pool is None:
            return ASKED.append(writer, facts, request=number, actor=collector)
        examples, new = assign(state, writer, self._log.parts, proposal, writer.last + 1)
        writer.put(fetch(state, examples))
        roles = "".join(LETTERS[e.role or ""] for e in examples)
        named: Named = {**facts, "ids": [e.id for e in examples], "roles": roles, "new": new}
        return NAMED.append(writer, named, request=number, actor=collector)

    def abandon(self, number: int, by: str | None, once: Once | None) -> None:
        """Give up a request: what is outstanding goes back to the budget."""

        def step(state: State, writer: Writer) -> None:
            facts = _need_open(state, writer, number)
            event = ABANDONED.append(writer, {}, request=number, actor=by)
            writer.put(returned(writer, facts, event.seq))

        with suppress(Repeated):
            self._log.write(step, still_open=True, once=once)

    def extend(self, number: int, seconds: float | None, by: str | None) -> float | None:
        """Let a request wait this long from now on; returns the time at which its lease ends."""
        until: list[float | None] = []

        def step(state: State, writer: Writer) -> None:
            _need_open(state, writer, number)
            until[:] = [None if seconds is None else writer.now + seconds]
            EXTENDED.append(writer, {"until": until[0]}, request=number, actor=by)

        self._log.write(step, still_open=True)
        return until[0]

    def retire(self, group: str, by: str | None, *, back: bool) -> None:
        """Ask for no more examples of this group; with `back`, ask for them again."""

        def step(state: State, writer: Writer) -> None:
            check_group(state, group)
            rest = [name for name in state.retired if name != group]
            RETIRED.append(writer, {"groups": rest if back else [*rest, group]}, actor=by)

        self._log.write(step, still_open=True)

    # ---------------------------------------------------------------- before an ask

    def _weigh(self) -> None:
        """In a certify phase, count the evidence first: the next request, and whether there is one, depends on it."""
        if self._log.state.frozen is not None and self._log.refresh().proving is not None:
            self._models.weigh()

    def _bring_scores_up(self) -> None:
        """Refit before an ask if the settings say so; waits while another process refits. A failure is recorded."""
        known = self._log.state  # may be outdated if another process changed settings; the next ask knows
        if known.settings["learner"] is None or (
            known.settings["refit"] == "background" and known.scored_at is not None
        ):
            return
        state = self._log.refresh()
        if state.settings["learner"] is None or not state.fresh or state.columns is None:
            return
        policy, first_rows = state.settings["refit"], state.examples <= 4 * state.settings["batch"]
        # a learner that cannot take these rows should fail
        # on the first of them, not a hundred labels later
        if policy != "always" and first_rows and state.scored_at is None and state.failure is None:
            self._models.try_out()
        if policy == "background":
            return
        # fixed now: while others keep telling labels, a wait
        # for the newest of them would never end
        wanted = max(state.arrived)
        # another process may hold the refit lease: its scores,
        # or its failure on these examples, end the wait
        while self._models.due(self._log.refresh()) and self._log.state.scores_rest_on < wanted:
            if not self._models.refit(record_failure=True):
                if self._log.state.failure is not None and self._log.state.failure["rests_on"] >= wanted:
                    break
                time.sleep(_POLL_SECONDS)


class _Room:
    """How many labels a collector may still be given; without a name, as many as the campaign has."""

    def __init__(self, state: State, collector: str | None) -> None:
        self._collector, self._most = collector, Limits.of(state.settings).labels if collector is not None else 0
        self._held = sum(r["size"] - r["told"] for r in state.open.values() if r["by"] == collector)

    def take(self, size: int) -> None:
        """Count a request in; the first one is always given, however large."""
        if self._collector is not None and self._held and self._held + size > self._most:
            raise NothingToAsk(
                "waiting for open requests",
                f"{self._collector!r} holds {self._held:,} labels that have not come, and a collector may hold "
                f"{self._most:,}: tell or give up some first, or ask whoever leads the campaign to change its limit",
            )
        self._held += size


def _need_open(state: State, reader: Reader, number: int) -> OpenRequest:
    if number in state.open:
        return state.open[number]
    raise not_open(state, reader, number)


def check_group(state: State, group: str) -> None:
    """Refuse a group that the campaign does not have."""
    if group not in state.groups:
        raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, state.groups))}")
