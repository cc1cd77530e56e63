"""Looking at a campaign on a server, with the same verbs as for one on this machine."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self

from evenhand.campaign.requests import Examples, Request, number_of
from evenhand.campaign.verification import Verification
from evenhand.claims.certificates import Certificate, Running
from evenhand.client.connection import Connection
from evenhand.client.receiving import examples_of, final_model_of, model_of, request_of
from evenhand.errors import InputError, NotFound
from evenhand.files import write_atomically
from evenhand.learners import Model
from evenhand.learners.choosing import FinalModel
from evenhand.notation import JsonObject

FIT_SECONDS = 3600.0
"""How long to wait for an answer that needs fits."""
_PAGE = 1000
_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class RemoteLooking:
    """The verbs that look.

    Attributes:
        connection: what requests are sent through.
        url_path: where the campaign is on the server, below its URL.
    """

    def __init__(self, connection: Connection, name: str, path: str) -> None:
        self.connection, self._name, self.url_path = connection, name, path
        self._groups: tuple[str, ...] = ()
        self._seen: tuple[str, JsonObject] | None = None
        self.settings  # noqa: B018  (a name that is not there is refused here, not at the first verb)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self._name

    def release(self) -> None:
        """Close the connections to the server."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Campaign {self.name!r} at {self.connection.url}>"

    @property
    def settings(self) -> JsonObject:
        """The campaign's settings, with all changes since it was created, as plain values."""
        found: JsonObject = self.connection.get(f"{self.url_path}/settings")
        return found

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        # once there are groups, they stay
        self._groups = self._groups or tuple(self.settings["groups"])
        return self._groups

    @property
    def budget(self) -> int:
        """How many labels may be spent."""
        return int(self._look()["budget"])

    @property
    def labels_used(self) -> int:
        """Labels charged to the budget so far; those of open requests are not."""
        return int(self._look()["used"])

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        return int(self._look()["unspent"])

    @property
    def counts(self) -> dict[str, int]:
        """Training examples per group."""
        return {group: about["training"] for group, about in self._look()["groups"].items()}

    @property
    def mixture(self) -> dict[str, float]:
        """Each group's share of the training examples."""
        return {group: about["share"] for group, about in self._look()["groups"].items()}

    @property
    def done(self) -> bool:
        """Whether the campaign is over: no request can be made unless settings change or labels are refunded."""
        found = self._look()
        return not found["open"] and found["nothing_to_ask"] is not None

    @property
    def open_requests(self) -> list[Request]:
        """Requests that still wait for labels, oldest first."""
        found = self.connection.get(f"{self.url_path}/requests")["requests"]
        return [request_of(record, self.groups) for record in found]

    def training_set(self) -> Examples:
        """The training examples, in the order they came; data frames come back as pandas frames."""
        return self._examples("train")

    def validation_set(self) -> Examples:
        """The validation examples of all groups, in the order they came."""
        return self._examples("validate")

    def test_set(self) -> Examples:
        """The test examples of all groups, in the order they came; no model learns from them."""
        return self._examples("test")

    def _examples(self, role: str) -> Examples:
        return examples_of(self.connection.get(f"{self.url_path}/examples", role=role))

    def model(self) -> Model | None:
        """The model fitted on the training examples as they stand; None before the first."""
        return model_of(self._model("current"))

    def final_model(self, plain: bool = False) -> FinalModel:
        """The model to deploy: fitted on the server, on every label; `.choice` says what was chosen and why."""
        return final_model_of(self._model("plain" if plain else "final"))

    def certified_model(self) -> Model | None:
        """The model the certificate is about; None without one."""
        return model_of(self._model("certified"))

    def _model(self, which: str) -> Any:
        return self.connection.get(f"{self.url_path}/model", which=which, timeout=FIT_SECONDS)["model"]

    def certificate(self, delta: float | None = None) -> Certificate | None:
        """What is certain about the frozen model now; None if there is none. `delta` is that of `certify` by default."""
        try:
            return Certificate.from_dict(self.connection.get(f"{self.url_path}/certificate", delta=delta))
        except NotFound:
            self.settings  # noqa: B018  (if the campaign itself is gone, this raises the error that says so)
            return None

    def running(self, delta: float = 0.05) -> Running:
        """The average error in every group of all models so far, as of the last refit."""
        return Running.from_dict(self.connection.get(f"{self.url_path}/running", delta=delta))

    def status(self) -> JsonObject:
        """Budget, every group, requests, collectors, scores, and whether there is anything left to ask: plain values."""
        found: JsonObject = self.connection.get(self.url_path)
        return found

    def _look(self) -> JsonObject:
        """The status; it is not sent again while nothing has changed."""
        seen = self._seen
        headers = {} if seen is None else {"If-None-Match": seen[0]}
        answer = self.connection.send("GET", self.url_path, headers=headers)
        if seen is not None and answer.status_code == 304:
            return seen[1]
        found: JsonObject = answer.json()
        self._seen = answer.headers["etag"], found
        return found

    def explain(self, r: Request | int | None = None) -> JsonObject:
        """Why a request was made, or by default why the next one would be: the decision, and in `words` a sentence."""
        number = None if r is None else number_of(r)
        found: JsonObject = self.connection.get(f"{self.url_path}/explain", request=number)
        return found

    def events(self, after: int = 0, limit: int | None = None) -> list[JsonObject]:
        """The events after number `after`: number, time, kind, request, actor and facts, as plain values."""
        found: list[JsonObject] = []
        while True:
            wanted = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = self.connection.get(f"{self.url_path}/events", after=after, limit=wanted)["events"]
            found += page
            if len(page) < wanted or len(found) == limit:
                return found
            after = page[-1]["seq"]

    def verify(self) -> Verification:
        """Have the server replay every event, choose every request again from the recorded scores, check every row."""
        found = self.connection.get(f"{self.url_path}/verify", timeout=FIT_SECONDS)
        return Verification(**{name: value for name, value in found.items() if name != "ok"})

    def export(self, path: str | PathLike[str], *, force: bool = False) -> int:
        """Write the data set gathered so far, with ids, groups, roles and labels; returns the number of rows."""
        target = Path(path)
        if target.suffix.lower() not in _FORMATS:
            raise InputError(f"cannot write {target.name!r}: name a .csv, .parquet or .jsonl file")
        if target.exists() and not force:
            raise InputError(f"{target} is there already: name a new file, or replace it with force=True")
        form = _FORMATS[target.suffix.lower()]
        with self.connection.stream(f"{self.url_path}/export", FIT_SECONDS, format=form) as answer:

            def write(part: Path) -> None:
                with part.open("wb") as file:
                    for data in answer.iter_bytes():
                        file.write(data)

            write_atomically(target, write)
            return int(answer.headers["evenhand-rows"])
