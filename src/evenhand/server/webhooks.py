"""Webhooks: events of a campaign, sent to addresses that its lead chooses, signed as Standard Webhooks specifies.

Every webhook has a position in the event log. What comes after it is sent in order; after a failure the same message is
sent again, with the same id, at growing intervals. Several servers share the work: one at a time holds a webhook.
"""

from __future__ import annotations

import random
import secrets
import time
import uuid
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import anyio
import anyio.to_thread
import httpx
import orjson
from sqlalchemy import delete, insert, or_, select, update
from standardwebhooks import Webhook

from evenhand.campaign import Campaign
from evenhand.campaign.events import ANSWERS, COUNTED, REQUESTS, answer_in, reason_in, request_in
from evenhand.campaign.requests import as_time
from evenhand.errors import EvenhandError, InputError, NotFound, NothingToAsk
from evenhand.ledger import Event, schema
from evenhand.ledger.database import DatabaseLedger
from evenhand.notation import JsonObject
from evenhand.server.addresses import checked_address, pinned

KINDS = ("request.opened", "request.filled", "request.expired", "campaign.stopped", "learner.failed")
_W = schema.webhooks.c
_HOLD_SECONDS = 60.0
_SEND_SECONDS = 10.0  # for one whole message: looking the host up, sending, reading the first line of the answer
_FIRST_WAIT = 2.0
_LONGEST_WAIT = 6 * 3600.0
_AT_ONCE = 50
_EVENTS = (*REQUESTS, *ANSWERS, "skipped")
# events that can end a campaign: the last labels, or scores that a stopping rule waited for
_SPENDING, _SCORING = (*ANSWERS, "skipped", "abandoned", "expired"), ("scored", "losses", "concluded")


class Due(NamedTuple):
    """A webhook that may be sent to now."""

    id: int
    campaign: int
    url: str
    secret: str
    kinds: tuple[str, ...]
    seq: int
    failures: int


class Message(NamedTuple):
    """A message: its kind, the event it is about, and its id, which is the same at every try."""

    kind: str
    event: Event
    name: str
    reason: str | None = None


def message_of(event: Event, waiting: dict[int, int]) -> str | None:
    """The kind of message for an event; `waiting` says how many labels each request still waits for."""
    number = int(event.request or 0)
    if event.kind in REQUESTS:
        waiting[number] = request_in(event)["size"]
        return "request.opened"
    if event.kind in (*ANSWERS, "skipped") and waiting.get(number, 0) > 0:
        came = 1 if event.kind == "skipped" else answer_in(event)["rows"] - answer_in(event)["surplus"]
        waiting[number] = 0 if event.kind == COUNTED.name else waiting[number] - came
        return "request.filled" if waiting[number] <= 0 else None
    return {"expired": "request.expired", "closed": "campaign.stopped", "failed": "learner.failed"}.get(event.kind)


class Webhooks:
    """The webhooks of one database."""

    def __init__(self, ledger: DatabaseLedger) -> None:
        self._ledger = ledger
        self._holder = uuid.uuid4().hex

    def create(
        self, campaign: int, url: str, kinds: Sequence[str], seq: int, *, allowed: Sequence[str] = ()
    ) -> JsonObject:
        """Make a webhook for what happens after event `seq`; returns it with its secret."""
        unknown = next((kind for kind in kinds if kind not in KINDS), None)
        if unknown is not None:
            raise InputError(f"there is no kind {unknown!r}: use {', '.join(KINDS)}")
        checked_address(url, allowed)
        secret = f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"
        row = {
            "campaign": campaign, "url": url, "secret": secret, "kinds": ",".join(kinds), "seq": seq, "failures": 0,
            "next_try": 0.0, "last_error": None, "holder": None, "until": None,
        }  # fmt: skip
        with self._ledger.transaction(writing=True) as connection:
            number = connection.execute(insert(schema.webhooks).values(row).returning(_W.id)).scalar_one()
        return {"id": number, "url": url, "kinds": list(kinds), "secret": secret}

    def of(self, campaign: int) -> list[JsonObject]:
        """The webhooks of a campaign, without their secrets."""
        question = select(schema.webhooks).where(_W.campaign == campaign).order_by(_W.id)
        with self._ledger.transaction(writing=False) as connection:
            rows = connection.execute(question).mappings().all()
        return [
            {
                **{name: row[name] for name in ("id", "url", "seq", "failures", "last_error")},
                "kinds": row["kinds"].split(","),
                "next_try": as_time(row["next_try"]) if row["failures"] else None,
            }
            for row in rows
        ]

    def delete(self, campaign: int, number: int) -> None:
        """Delete a webhook of a campaign."""
        with self._ledger.transaction(writing=True) as connection:
            gone = connection.execute(
                delete(schema.webhooks).where(_W.id == number, _W.campaign == campaign).returning(_W.id)
            ).first()
        if gone is None:
            raise NotFound(f"this campaign has no webhook {number}")

    def due(self) -> list[Due]:
        """The webhooks that may be sent to now, whether or not there is anything to send."""
        now = time.time()
        free = or_(_W.until.is_(None), _W.until <= now, _W.holder == self._holder)
        question = select(_W.id, _W.campaign, _W.url, _W.secret, _W.kinds, _W.seq, _W.failures)
        with self._ledger.transaction(writing=False) as connection:
            rows = connection.execute(question.where(_W.next_try <= now, free)).all()
        return [Due(*row[:4], tuple(row[4].split(",")), *row[5:]) for row in rows]

    async def send(self, due: Due, campaign: Campaign, allowed: Sequence[str]) -> tuple[int, int]:
        """Send what is new, oldest first, until something fails; returns how many messages were sent and failed."""
        if not await anyio.to_thread.run_sync(self._begin, due, campaign):
            return 0, 0
        # another server takes over when the hold expires, so this one stops before that
        until = anyio.current_time() + _HOLD_SECONDS - 2 * _SEND_SECONDS
        sent, last, failure = 0, due.seq, None
        try:
            messages, newest = await anyio.to_thread.run_sync(_new_messages, campaign, due)
            for message in messages:
                if anyio.current_time() > until:
                    break
                failure = await _post(due, campaign.name, message, allowed)
                if failure is not None:
                    break
                sent, last = sent + 1, message.event.seq
            else:
                last = newest
        finally:
            with anyio.CancelScope(shield=True):  # what was sent is recorded even if the server stops
                await anyio.to_thread.run_sync(self._done, due, last, failure)
        return sent, int(failure is not None)

    def _begin(self, due: Due, campaign: Campaign) -> bool:
        return campaign.state.seq > due.seq and self._hold(due)

    def _hold(self, due: Due) -> bool:
        """Whether this server may send to a webhook now; if so, no other server does meanwhile."""
        now = time.time()
        free = or_(_W.until.is_(None), _W.until <= now, _W.holder == self._holder)
        # another server may have sent, or failed, since this one looked
        as_seen = (_W.seq == due.seq, _W.failures == due.failures)
        change = update(schema.webhooks).where(_W.id == due.id, free, *as_seen).returning(_W.id)
        with self._ledger.transaction(writing=True) as connection:
            values = {"holder": self._holder, "until": now + _HOLD_SECONDS}
            return connection.execute(change.values(values)).first() is not None

    def _done(self, due: Due, seq: int, failure: str | None) -> None:
        failures = due.failures + 1 if failure is not None else 0
        wait = (
            0.0 if failure is None else min(_FIRST_WAIT * 2.0**due.failures, _LONGEST_WAIT) * random.uniform(0.9, 1.1)
        )
        values = {
            "seq": seq, "failures": failures, "next_try": time.time() + wait, "last_error": failure, "holder": None,
            "until": None,
        }  # fmt: skip
        ours = update(schema.webhooks).where(_W.id == due.id, _W.holder == self._holder)
        with self._ledger.transaction(writing=True) as connection:
            connection.execute(ours.values(values))


def _new_messages(campaign: Campaign, due: Due) -> tuple[list[Message], int]:
    """The messages for the next events of a campaign, and the last of these events."""
    with campaign.reading() as reader:
        found = reader.events(due.seq, limit=_AT_ONCE)
        waiting: dict[int, int] = {}
        for number in {int(event.request) for event in found if event.request is not None}:
            for earlier in reader.events(kinds=_EVENTS, request=number):
                if earlier.seq <= due.seq:
                    message_of(earlier, waiting)
    messages = []
    for event in found:
        kind = message_of(event, waiting)
        if kind is not None:
            messages.append(Message(kind, event, f"msg_{due.id}_{event.seq}", reason_in(event)))
    if (end := _ended(campaign, found)) is not None:
        # among the others in the order of events, so that a failure later on does not send it again
        messages = sorted([*messages, Message("campaign.stopped", *end)], key=lambda message: message.event.seq)
        messages = [m._replace(name=f"msg_{due.id}_{m.event.seq}_end") if m.name == "" else m for m in messages]
    return [message for message in messages if message.kind in due.kinds], found[-1].seq if found else due.seq


def _ended(campaign: Campaign, events: Sequence[Event]) -> tuple[Event, str, str] | None:
    """The event that left nothing to ask, an empty name, and why; None if there is more to ask or it ended earlier."""
    if not events or events[-1].seq < campaign.state.seq or campaign.seen.open:
        return None
    try:
        campaign.propose()
    except NothingToAsk as nothing:
        kinds = _SCORING if nothing.reason == "stopping rule" else _SPENDING
        last = [event for event in events if event.kind in kinds]
        return (last[-1], "", nothing.reason) if last and nothing.reason != "closed" else None
    except EvenhandError:
        return None  # a strategy or a rule that this process may not import
    return None


async def _post(due: Due, campaign: str, message: Message, allowed: Sequence[str]) -> str | None:
    """Send one message; returns what went wrong, or None."""
    moment, event = datetime.now(UTC), message.event
    about = {"campaign": campaign, "request": event.request, "event": event.seq, "actor": event.actor}
    data = about if message.reason is None else {**about, "reason": message.reason}
    body = orjson.dumps({"type": message.kind, "timestamp": as_time(event.at), "data": data}).decode()
    headers = {
        "webhook-id": message.name,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(due.secret).sign(message.name, moment, body),
        "content-type": "application/json",
        "user-agent": "evenhand",
    }
    try:
        with anyio.fail_after(_SEND_SECONDS):
            address = await anyio.to_thread.run_sync(checked_address, due.url, allowed, abandon_on_cancel=True)
            async with (
                pinned(address, timeout=_SEND_SECONDS) as client,
                # of the answer only the status is read: its body may have no end
                client.stream("POST", due.url, content=body, headers=headers) as found,
            ):
                return None if found.is_success else f"answered with {found.status_code}"
    except TimeoutError:
        return f"no answer within {_SEND_SECONDS:g} seconds"
    except (InputError, httpx.HTTPError) as error:
        return f"{type(error).__name__}: {error}"[:300]
