"""A campaign on a server: the verbs of `Campaign` over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.arrays import Features
from evenhand.campaign.labels import plain_list
from evenhand.campaign.pooling import Pooled
from evenhand.campaign.requests import Receipt, Request, number_of
from evenhand.claims.certificates import Certificate
from evenhand.client.looking import FIT_SECONDS, RemoteLooking
from evenhand.client.receiving import moment_of, receipt_of, request_of
from evenhand.client.sending import change_body, ids_of, labels_body, rows_body, table_body
from evenhand.errors import InputError

__all__ = ["RemoteCampaign"]


class RemoteCampaign(RemoteLooking):
    """A campaign on a server, with the verbs of `Campaign`, whose page says what each one does.

    The token says who does something; with the role lead, `collector=` may name somebody else. Every step may be sent
    again after a lost connection without being taken twice: a receipt then counts rows that were stored the first time
    as `known`. Fits happen on the server, as the campaign's `refit` setting says.
    """

    def ask(self, collector: str | None = None) -> Request:
        """The next request. Raises `NothingToAsk` with the reason."""
        return self.ask_many(1, collector)[0]

    def ask_many(self, count: int, collector: str | None = None, *, max_wait: float | None = None) -> list[Request]:
        """Up to `count` requests at once; waits for a refit that is due, `max_wait` seconds at most."""
        body = {"count": count, "collector": collector, "max_wait": max_wait}
        found = self.connection.post(f"{self.url_path}/ask", body, repeat="key", timeout=FIT_SECONDS)
        return [request_of(record, self.groups) for record in found["requests"]]

    def tell(
        self,
        request: Request | int,
        X: Features | None = None,
        y: Any = None,
        ids: Any = None,
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        n: int | None = None,
    ) -> Receipt:
        """Answer a request with labelled rows, all at once or in parts: lists, arrays or a frame; or their number."""
        if (X is None) != (y is None) or (X is None) == (n is None):
            raise InputError("tell either rows, tell(request, X, y), or their number, tell(request, n=...)")
        event = request.event if isinstance(request, Request) else None
        found = self.connection.post(
            f"{self.url_path}/requests/{number_of(request)}/tell",
            {"n": n} if X is None else rows_body(X, y, ids),
            collector=collector, partial=partial, extra=extra, dry_run=dry_run, event=event,
        )  # fmt: skip
        return receipt_of(found)

    def tell_labels(
        self,
        labels: Mapping[str, Any],
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Tell the labels of pool examples by id, whichever requests they fill."""
        found = self.connection.post(
            f"{self.url_path}/labels", labels_body(labels), collector=collector, partial=partial, extra=extra,
            dry_run=dry_run,
        )  # fmt: skip
        return receipt_of(found)

    def add(self, X: Features, y: Any, groups: Sequence[str], ids: Any = None, charge: bool = False) -> Receipt:
        """Bring in labelled data you already have."""
        return receipt_of(self.connection.post(f"{self.url_path}/add", rows_body(X, y, ids, groups), charge=charge))

    def pool(
        self,
        data: Any,
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
        merge_spellings: bool = False,
        max_categories: int | None = None,
        use_group_as_feature: bool = False,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> Pooled:
        """Register examples that are not labelled yet, a data frame or a CSV, JSON lines or Parquet file, which is uploaded."""
        by = [group] if isinstance(group, str) else list(group)
        if not by:
            raise InputError("name the column that tells the group, group=...")
        if features is not None and not features:
            raise InputError("there are no features: every example needs a column beside id, group and label")
        kind, content = table_body(data, ignore)
        params = {
            "id": "" if id is None else id, "group": by,
            "feature": None if features is None else list(features), "ignore": list(ignore), "exclude": list(exclude),
            "text": text, "image": image, "vector": vector, "number": list(numbers), "missing": list(missing),
            "merge_below": merge_below, "merge_spellings": merge_spellings, "max_categories": max_categories,
            "use_group_as_feature": use_group_as_feature, "separator": separator,
            "decimal": decimal, "encoding": encoding,
        }  # fmt: skip
        # without ids nobody can tell a second table from the first one sent again
        found = self.connection.send(
            "POST", f"{self.url_path}/pool", content=content, kind=kind, params=params, timeout=FIT_SECONDS,
            repeat="never" if id is None else "safe",
        )  # fmt: skip
        return Pooled(**found.json())

    def tell_losses(self, losses: Mapping[str, Sequence[float]]) -> None:
        """Report your own model's mean loss, accuracy and number of validation examples, group by group."""
        body = {"losses": {group: plain_list(reported) for group, reported in losses.items()}}
        self.connection.post(f"{self.url_path}/losses", body, repeat="key")

    def correct(self, id: str | Mapping[str, Any], label: Any = None, reason: str | None = None) -> int:
        """Correct the label of an example, or of several with `{id: label}`, all or none; returns how many changed."""
        body = labels_body(id if isinstance(id, Mapping) else {id: label})
        return int(self.connection.post(f"{self.url_path}/correct", {**body, "reason": reason})["changed"])

    def withdraw(self, id: str | Sequence[str], reason: str | None = None, refund: bool = False) -> int:
        """Take examples back for good; `refund` gives their labels back to the budget."""
        body = {"ids": ids_of(id), "reason": reason, "refund": refund}
        return int(self.connection.post(f"{self.url_path}/withdraw", body)["changed"])

    def erase(self, id: str | Sequence[str], reason: str | None = None) -> list[str]:
        """Delete the features and labels of examples from storage; returns what may hold values learned from them."""
        found = self.connection.post(f"{self.url_path}/erase", {"ids": ids_of(id), "reason": reason})
        return list(found["may_remember"])

    def skip(self, id: str, reason: str | None = None) -> None:
        """Leave out an example that nobody can label: it leaves the pool, and its request shrinks."""
        self.connection.post(f"{self.url_path}/skip", {"id": id, "reason": reason})

    def abandon(self, request: Request | int) -> None:
        """Give up a request: what is outstanding goes back to the budget, what was told stays."""
        self.connection.post(f"{self.url_path}/requests/{number_of(request)}/abandon", repeat="key")

    def extend(self, request: Request | int, lease: str | float | None) -> float | None:
        """Let a request wait this long from now on, e.g. `"2d"`; returns the time its lease ends, to the second."""
        body = {"lease": "never" if lease is None else lease}
        found = self.connection.post(f"{self.url_path}/requests/{number_of(request)}/extend", body)
        return moment_of(found["until"])

    def retire(self, group: str, back: bool = False) -> None:
        """Ask for no more examples of this group, which has nothing left to give; with `back`, ask for them again."""
        self.connection.post(f"{self.url_path}/retire", {"group": group, "back": back})

    def change(self, **settings: Any) -> None:
        """Change `budget`, `learner`, `lease`, `stop` or `refit` from here on."""
        self.connection.post(f"{self.url_path}/change", change_body(settings))

    def close(self, reason: str = "closed") -> None:
        """End the campaign: nothing is asked or accepted any more. `status` then says which model to deploy."""
        self.connection.post(f"{self.url_path}/close", {"reason": reason}, repeat="key", timeout=FIT_SECONDS)

    def refit(self) -> bool:
        """Fit and score now, on the server; False if there was nothing to do or another process is refitting."""
        return bool(self.connection.post(f"{self.url_path}/refit", timeout=FIT_SECONDS)["refitted"])

    def certify(
        self,
        target: float | None = None,
        *,
        model: str = "final",
        most: int | None = None,
        delta: float | None = None,
        distinct: bool | None = None,
    ) -> Certificate:
        """Freeze a model, `"final"` or `"current"`, and with a target begin to prove that no risk is above it."""
        body = {"target": target, "model": model, "most": most, "delta": delta, "distinct": distinct}
        # sent again, it would freeze a second model, which gets a smaller δ
        found = self.connection.post(f"{self.url_path}/certify", body, repeat="never", timeout=FIT_SECONDS)
        return Certificate.from_dict(found)
