"""Tokens: who may use a server, kept as digests of secrets that are shown once."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from evenhand.campaign.labels import check_text
from evenhand.campaign.requests import as_time
from evenhand.errors import InputError, NotFound
from evenhand.ledger import schema
from evenhand.ledger.database import DatabaseLedger
from evenhand.notation import JsonObject

_T, _C = schema.tokens.c, schema.campaigns.c
_SHAPE = re.compile(r"evh_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
SESSION_SECONDS = 12 * 3600.0
_MOST_SESSIONS = 1000
"""Sessions of one token or share link; whoever follows a link more often ends the oldest."""
_PARENT = schema.tokens.alias()
# built once, because every request runs this query
_FIND = (
    select(_T.id, _T.digest, _T.name, _T.role, _T.campaign, _T.kind, _T.expires, _T.revoked)
    .add_columns(_PARENT.c.expires, _PARENT.c.revoked, _T.parent)
    .select_from(schema.tokens.outerjoin(_PARENT, _PARENT.c.id == _T.parent))
    .where(_T.id == bindparam("number"))
)


class Role(IntEnum):
    """What a token may do; a higher role may do all that a lower one may."""

    viewer = 1
    collector = 2
    lead = 3
    admin = 4


@dataclass(frozen=True)
class Grant:
    """Who makes a request, and what they may do.

    Attributes:
        id: the token's id; None for somebody on this machine without a token.
        source: the id of the token or share link that it comes from: for a session, the one it was exchanged for.
        name: the collector's name, and the actor in the events of what they do.
        role: what they may do.
        campaign: the number of the one campaign it is for; None is all of them.
        kind: `token`, `share`, `session`, or `local`.
    """

    id: str | None
    name: str
    role: Role
    campaign: int | None = None
    kind: str = "token"
    source: str | None = None

    def may(self, role: Role, campaign: int | None = None) -> bool:
        """Whether this grant includes a role, on a campaign if one is named."""
        return self.role >= role and (campaign is None or self.campaign in (None, campaign))


class Tokens:
    """The tokens of one database."""

    def __init__(self, ledger: DatabaseLedger) -> None:
        self._ledger = ledger

    def create(
        self,
        name: str,
        role: Role,
        *,
        campaign: int | None = None,
        seconds: float | None = None,
        kind: str = "token",
        parent: str | None = None,
    ) -> tuple[str, JsonObject]:
        """Make a token: its text, which cannot be shown again, and the record that the database keeps."""
        check_text(name, "the token's name")
        if role is Role.admin and campaign is not None:
            raise InputError("an admin is for all campaigns: name none, or choose the role lead")
        number, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), time.time()
        row = {
            "id": number, "digest": _digest(secret), "kind": kind, "name": name, "role": role.name, "campaign": campaign,
            "parent": parent, "created": now, "expires": None if seconds is None else now + seconds, "revoked": None,
        }  # fmt: skip
        with self._ledger.transaction(writing=True) as connection:
            connection.execute(insert(schema.tokens).values(row))
        return f"evh_{number}_{secret}", self._shown(row, None)

    def find(self, text: str) -> Grant | None:
        """The grant of a token; None if it does not exist or is no longer valid."""
        if (shape := _SHAPE.fullmatch(text)) is None:
            return None
        with self._ledger.transaction(writing=False) as connection:
            row = connection.execute(_FIND, {"number": shape[1]}).first()
        # compared even if there is no such token, so that the time taken does not reveal which ids exist
        same = hmac.compare_digest(_digest(shape[2]), row[1] if row is not None else _digest(""))
        if row is None or not same or not _is_valid(row[6:8]) or not _is_valid(row[8:10]):
            return None
        return Grant(row[0], row[2], Role[row[3]], row[4], row[5], row[10] or row[0])

    def still_valid(self, grant: Grant) -> bool:
        """Whether a grant found earlier has neither expired nor been revoked since."""
        if grant.id is None:
            return not self.ever()  # access without a token ends with the first one
        with self._ledger.transaction(writing=False) as connection:
            row = connection.execute(_FIND, {"number": grant.id}).first()
        return row is not None and _is_valid(row[6:8]) and _is_valid(row[8:10])

    def session(self, grant: Grant) -> str:
        """Exchange a token for a browser session with the same rights; the session ends with the token."""
        own = select(_T.id).where(_T.parent == grant.id).order_by(_T.created.desc()).offset(_MOST_SESSIONS - 1)
        ended = or_(_T.expires < time.time(), _T.id.in_(own.subquery().select()))
        with self._ledger.transaction(writing=True) as connection:  # a link that is followed often leaves many
            connection.execute(delete(schema.tokens).where(_T.kind == "session", ended))
        text, _ = self.create(
            grant.name, grant.role, campaign=grant.campaign, seconds=SESSION_SECONDS, kind="session", parent=grant.id
        )
        return text

    def revoke(self, number: str) -> None:
        """Revoke a token, together with the sessions that were started with it."""
        change = update(schema.tokens).where(or_(_T.id == number, _T.parent == number), _T.revoked.is_(None))
        with self._ledger.transaction(writing=True) as connection:
            known = connection.execute(select(_T.id).where(_T.id == number)).first()
            connection.execute(change.values(revoked=time.time()))
        if known is None:
            raise NotFound(f"there is no token {number!r}: `evenhand token list` shows them")

    def known(self, campaign: int | None = None, kinds: tuple[str, ...] = ("token", "share")) -> list[JsonObject]:
        """All tokens, or those of one campaign, newest last; never their secrets."""
        question = select(schema.tokens, _C.name.label("campaign_name")).where(_T.kind.in_(kinds)).order_by(_T.created)
        question = question.select_from(schema.tokens.outerjoin(schema.campaigns, _C.id == _T.campaign))
        if campaign is not None:
            question = question.where(_T.campaign == campaign)
        with self._ledger.transaction(writing=False) as connection:
            return [self._shown(dict(row), row["campaign_name"]) for row in connection.execute(question).mappings()]

    def any(self) -> bool:
        """Whether there is a valid token."""
        now = time.time()
        valid = select(func.count()).where(
            _T.kind == "token", _T.revoked.is_(None), or_(_T.expires.is_(None), _T.expires > now)
        )
        with self._ledger.transaction(writing=False) as connection:
            return bool(connection.execute(valid).scalar_one())

    def ever(self) -> bool:
        """Whether there has ever been a token or a share link, those that ended included."""
        known = select(_T.id).where(_T.kind.in_(("token", "share"))).limit(1)
        with self._ledger.transaction(writing=False) as connection:
            return connection.execute(known).first() is not None

    def _shown(self, row: JsonObject, campaign: str | None) -> JsonObject:
        shown = {name: row[name] for name in ("id", "kind", "name", "role")}
        times = {name: as_time(row[name]) for name in ("created", "expires", "revoked")}
        return {**shown, "campaign": campaign, **times, "valid": _is_valid((row["expires"], row["revoked"]))}


def _digest(secret: str) -> str:
    # the secret has 256 random bits, so no slow hash is needed to keep it from being guessed
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_valid(times: Any) -> bool:
    expires, revoked = times
    return revoked is None and (expires is None or expires > time.time())
