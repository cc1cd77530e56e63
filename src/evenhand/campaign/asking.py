"""Asking: requests made, given up, extended, and groups that have nothing left to give."""

from __future__ import annotations

import time
from contextlib import suppress

from evenhand.campaign.answering import not_open
from evenhand.campaign.deciding import Proposal
from evenhand.campaign.labels import check_text
from evenhand.campaign.pooling import Pooling
from evenhand.campaign.pools import assign, fetch, fetch_ahead
from evenhand.campaign.requests import Request, request_of
from evenhand.campaign.settings import Limits, as_seconds
from evenhand.campaign.state import LETTERS, State
from evenhand.campaign.store import Once, returned
from evenhand.errors import InputError, NothingToAsk, Repeated
from evenhand.ledger import Event, Reader, Writer
from evenhand.notation import JsonObject

__all__ = ["Asking"]

_POLL_SECONDS = 0.05


class Asking(Pooling):
    """The verbs about requests."""

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
        if count < 1:
            raise InputError(f"ask for 1 request or more, not {count}")
        if collector is not None:
            check_text(collector, "the collector")
        # fits, evidence and rows of files come first and outside
        # the write lock: under it nobody else can tell or ask
        if refit:
            self._bring_scores_up()
        self._weigh()
        fetch_ahead(self.store, 2 * self.store.state.settings["batch"] * count)

        def step(state: State, writer: Writer) -> None:
            # only the first one asks the stopping rule: no label can come between these requests
            proposal = self.store.proposed(state, writer)
            room = _Room(state, collector if limited else None)
            room.take(proposal.size)
            # each request is decided as if the ones before it had been made, which is what asks
            # one after another would do; the copy keeps this what-if out of the shared state
            state = state.copy() if count > 1 else state
            for _ in range(count - 1):
                state.fold([self._asked(state, writer, proposal, collector)])
                try:
                    proposal = self.store.chooser.propose(state)
                    room.take(proposal.size)
                except NothingToAsk:
                    return
            self._asked(state, writer, proposal, collector)

        try:
            events = self.store.write(step, once=once)
        except Repeated as repeated:
            first, last = repeated.events
            with self.store.ledger.reading(self.store.number) as reader:
                events = reader.events(first - 1, limit=last - first + 1)
        return [request_of(event, self.groups) for event in events if event.kind == "asked"]

    def _asked(self, state: State, writer: Writer, proposal: Proposal, collector: str | None) -> Event:
        """Record a request and, with a pool, which examples it names."""
        lease, number = state.settings["lease"], state.asked + 1
        facts: JsonObject = {
            "decision": proposal.decision.as_dict(),
            "size": proposal.size,
            "until": None if lease is None else writer.now + lease,
            # recorded because `verify` has to choose again from the scores of that moment
            "rests_on": state.scores_rest_on,
            "scored_at": state.scored_at,
            "behind": state.examples - state.scored_examples,
        }
        if state.pool is not None:
            examples, new = assign(state, writer, self.store.chooser, proposal, writer.last + 1)
            writer.put(fetch(state, examples))
            roles = "".join(LETTERS[e.role or ""] for e in examples)
            facts |= {"ids": [e.id for e in examples], "roles": roles, "new": new}
        return writer.append("asked", facts, request=number, actor=collector)

    def abandon(self, request: Request | int, *, by: str | None = None, once: Once | None = None) -> None:
        """Give up a request: what is outstanding goes back to the budget, what was told stays."""
        number = self._own_request(request)

        def step(state: State, writer: Writer) -> None:
            facts = self._need_open(state, writer, number)
            event = writer.append("abandoned", {}, request=number, actor=by)
            writer.put(returned(writer, facts, event.seq))

        with suppress(Repeated):
            self.store.write(step, still_open=True, once=once)

    def extend(self, request: Request | int, lease: str | float | None, *, by: str | None = None) -> float | None:
        """Let a request wait this long from now on, e.g. `"2d"`; returns the time at which its lease ends."""
        number, seconds = self._own_request(request), as_seconds(lease)
        until: list[float | None] = []

        def step(state: State, writer: Writer) -> None:
            self._need_open(state, writer, number)
            until[:] = [None if seconds is None else writer.now + seconds]
            writer.append("extended", {"until": until[0]}, request=number, actor=by)

        self.store.write(step, still_open=True)
        return until[0]

    def retire(self, group: str, back: bool = False, *, by: str | None = None) -> None:
        """Ask for no more examples of this group, which has nothing left to give; with `back`, ask for them again."""

        def step(state: State, writer: Writer) -> None:
            _check_group(state, group)
            rest = [name for name in state.retired if name != group]
            writer.append("changed", {"retired": rest if back else [*rest, group]}, actor=by)

        self.store.write(step, still_open=True)

    def _weigh(self) -> None:
        """In a certify phase, count the evidence first: the next request, and whether there is one, depends on it."""
        if self.store.state.frozen is not None and self.store.refresh().proving is not None:
            self.store.trainer.certifier.weigh()

    def _bring_scores_up(self) -> None:
        """Refit before an ask if the settings say so; waits while another process refits. A failure is recorded."""
        known = self.store.state  # may be outdated if another process changed settings; the next ask knows
        if known.settings["learner"] is None or (
            known.settings["refit"] == "background" and known.scored_at is not None
        ):
            return
        state = self.store.refresh()
        if state.settings["learner"] is None or not state.fresh or state.columns is None:
            return
        policy, first_rows = state.settings["refit"], state.examples <= 4 * state.settings["batch"]
        # a learner that cannot take these rows should fail
        # on the first of them, not a hundred labels later
        if policy != "always" and first_rows and state.scored_at is None and state.failure is None:
            self.store.trainer.try_out()
        if policy == "background":
            return
        # fixed now: while others keep telling labels, a wait
        # for the newest of them would never end
        wanted = max(state.arrived)
        # another process may hold the refit lease: its scores,
        # or its failure on these examples, end the wait
        while self.store.trainer.due(self.store.refresh()) and self.store.state.scores_rest_on < wanted:
            if not self.store.trainer.refit(record_failure=True):
                if self.store.state.failure is not None and self.store.state.failure["rests_on"] >= wanted:
                    break
                time.sleep(_POLL_SECONDS)

    def _need_open(self, state: State, reader: Reader, number: int) -> JsonObject:
        if number in state.open:
            return state.open[number]
        raise not_open(state, reader, number)


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


def _check_group(state: State, group: str) -> None:
    if group not in state.groups:
        raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, state.groups))}")
