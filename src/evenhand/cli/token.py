"""`evenhand token`: who may use a server."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, handled, say
from evenhand.cli.lazy import lazy_app

app = lazy_app(
    "token",
    "Who may use a server: make, list and revoke tokens.",
    {"create": "token:create", "list": "token:known", "revoke": "token:revoke"},
)


def create(
    name: Annotated[str, typer.Argument(help="whom it is for; what they do is recorded under this name")],
    role: Annotated[
        Literal["viewer", "collector", "lead", "admin"],
        typer.Option(help="viewer looks, collector asks and tells, lead runs campaigns, admin makes tokens"),
    ],
    campaign: Annotated[str | None, typer.Option(help="one campaign; all of them by default")] = None,
    expires: Annotated[str, typer.Option(help="90m, 24h, 90d, never")] = "90d",
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a token; its text is printed only this once."""
    with handled(as_json):
        from evenhand.campaign.settings import as_seconds
        from evenhand.ledger.database import DatabaseLedger
        from evenhand.server.tokens import Role, Tokens

        with DatabaseLedger(db, create=True) as ledger:
            number = None if campaign is None else ledger.find(campaign)
            text, about = Tokens(ledger).create(name, Role[role], campaign=number, seconds=as_seconds(expires))
        until = f"until {about['expires']}" if about["expires"] else "for good"
        where = f"the campaign {campaign!r}" if campaign else "all campaigns"
        say({**about, "campaign": campaign, "token": text}, as_json, f"{text}\n{name}: {role} of {where}, {until}")


def known(db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """List all tokens and share links, without their secrets."""
    with handled(as_json):
        from evenhand.ledger.database import DatabaseLedger
        from evenhand.server.tokens import Tokens

        with DatabaseLedger(db, read_only=True) as ledger:
            found = Tokens(ledger).known()
        lines = [
            f"{t['id']}  {t['name']}: {t['role']} of {t['campaign'] or 'all campaigns'}, "
            + ("revoked" if t["revoked"] else f"until {t['expires'] or 'it is revoked'}" if t["valid"] else "expired")
            for t in found
        ]
        say(
            {"tokens": found}, as_json, "\n".join(lines) or "no tokens yet: evenhand token create NAME --role collector"
        )


def revoke(
    token: Annotated[str, typer.Argument(help="its id, as `evenhand token list` shows it")],
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Revoke a token, at once."""
    with handled(as_json):
        from evenhand.ledger.database import DatabaseLedger
        from evenhand.server.tokens import Tokens

        with DatabaseLedger(db) as ledger:
            Tokens(ledger).revoke(token)
        say({"id": token, "revoked": True}, as_json, f"token {token} is revoked")
