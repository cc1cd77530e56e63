"""Live campaigns: kept in a ledger, asked and told by many hands at once.

`create` makes one, `open_campaign` opens one; both give a `LiveCampaign`. The command line and the server stand on this.

>>> import tempfile
>>> url = f"sqlite:///{tempfile.mkdtemp()}/labels.db"
>>> c = create(url, "survey", ["u", "v"], "uniform", None, budget=8)
>>> request = c.ask(collector="ann")
>>> c.tell(request, n=2).training
1
>>> open_campaign(url, "survey").campaign().counts[request.group]
1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.ledger import Ledger, LedgerError
from evenhand.live.campaign import LiveCampaign
from evenhand.live.receipts import LiveReceipt, LiveRequest
from evenhand.live.settings import first_header
from evenhand.strategies import Rule

__all__ = ["Ledger", "LedgerError", "LiveCampaign", "LiveReceipt", "LiveRequest", "create", "open_campaign"]


def create(
    database: str | Ledger,
    name: str,
    groups: Sequence[str],
    strategy: str | Rule = "optimistic",
    learner: str | None = "logistic",
    *,
    budget: int,
    **settings: Any,
) -> LiveCampaign:
    """A new live campaign, in a database that is made if it is not there.

    Args:
        database: `sqlite:///file.db`, `postgresql://…`, or an open `Ledger`.
        name: the campaign's name.
        groups: the names of the groups.
        strategy: which group next, as text or one of ours.
        learner: what is trained, as text; None if you train yourself and report losses.
        budget: how many labels may be spent, training and validation together.
        settings: `batch`, `warmup`, `validation`, `classes`, `population`, `seed` as for `Campaign`; `refit` (`"always"`, a
            number of labels, `"background"`), `lease` (how long a request waits, e.g. `"24h"`), `stop` (stopping rules,
            any of which stops, e.g. `["target=0.1", "until=2027-03-01"]`), and the names of the
            `label` and `group` columns and of the `features` in delivered tables.
    """
    header = first_header(groups, strategy, learner, budget=budget, **settings)
    ledger = database if isinstance(database, Ledger) else Ledger(database, create=True)
    ledger.create(name, header)
    return LiveCampaign(ledger, name)


def open_campaign(database: str | Ledger, name: str, *, read_only: bool = False) -> LiveCampaign:
    """A campaign there is; `read_only` looks without changing or blocking anything."""
    return LiveCampaign(database if isinstance(database, Ledger) else Ledger(database, read_only=read_only), name)
