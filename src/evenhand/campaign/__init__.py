"""Campaigns: ask which group to label next, tell the labels that came.

`Campaign` is the one stateful class a user meets. What it knows is the fold of its ledger's events (`state`); what it
does is decide the next events.

- `campaign`: the verbs. `deciding`: the standing and the choice, from the state alone.
- `telling`, `deliveries`, `labels`, `features`: what comes in, checked row by row.
- `training`, `fitting`, `evidence`: refits, scores, the frozen model and what is known about it.
- `status`, `words`, `verify`, `files`: looking at it, checking it, copying it.
"""

from evenhand.campaign.campaign import Campaign, campaigns

__all__ = ["Campaign", "campaigns"]
