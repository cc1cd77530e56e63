"""Label Studio's answers on tape: a proxy that records a real server, and a server that plays the recording.

What people do moves the tape on to the next scene. Within a scene a call is known by its method and address, so a
connector may make its calls in another order, make one twice, or leave one out; a call that was never recorded is noted.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self

import httpx

Exchange = dict[str, Any]
RECORDING = Path(__file__).parents[2] / "assets" / "label-studio.json.gz"
_TIME = re.compile(r'("operator": "greater", "type": "Datetime", "value": )"[^"]*"')


class Tape:
    """A web server on a free port; `answer` says what to answer."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.asked: list[Exchange] = []
        self.scene, self.lock = 0, Lock()
        self.cut = 0  # calls to come that get no answer, because the line is cut
        tape = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet an answer: two wait 40 milliseconds for each other

            def reply(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                url = httpx.URL(self.path)
                call = {
                    "method": self.command,
                    "path": url.path,
                    "query": dict(url.params),
                    "body": json.loads(body) if body else None,
                    "scene": tape.scene,
                    "known": (self.headers.get("Authorization") or "") == f"Token {tape.key}",
                }
                with tape.lock:
                    tape.asked.append(call)
                    if tape.cut:
                        tape.cut -= 1
                        self.close_connection = True
                        return
                    found = tape.answer(call, self.headers.get("Authorization") or "")
                text = b"" if found["json"] is None else json.dumps(found["json"]).encode()
                self.send_response_only(found["status"])
                self.send_header("Content-Length", str(len(text)))
                for name, value in {"Date": found.get("date"), **found.get("headers", {})}.items():
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)
                self.wfile.flush()

            do_GET = do_POST = do_PATCH = do_DELETE = reply

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def answer(self, call: Exchange, authorization: str) -> Exchange:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Recorder(Tape):
    """Passes calls on to a real server and keeps the answers; `people` are kept too, by what they did."""

    def __init__(self, url: str, key: str, people: object) -> None:
        self._real = httpx.Client(base_url=url, timeout=60, trust_env=False)
        self.exchanges: list[Exchange] = []
        self.scenes: list[Exchange] = []
        self.people = _People(self._act, people)
        super().__init__(key)

    def answer(self, call: Exchange, authorization: str) -> Exchange:
        answer = self._real.request(
            call["method"],
            call["path"],
            params=call["query"],
            json=call["body"],
            headers={"Authorization": authorization},
        )
        found = {
            "status": answer.status_code,
            "date": answer.headers["date"],
            "json": answer.json() if answer.content else None,
        }
        kept = {name: value for name, value in call.items() if name != "body"}
        self.exchanges.append({**kept, **found, "json": _clean(found["json"])})
        return found

    def _act(self, real: Callable[..., Any], name: str, arguments: list[Any]) -> Any:
        result = real(*arguments)
        with self.lock:
            self.scenes.append({"did": name, "with": arguments, "result": result})
            self.scene += 1
        return result

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._real.close()

    def save(self, path: Path, about: Exchange) -> None:
        kept = {"about": about, "scenes": self.scenes, "exchanges": self.exchanges}
        path.write_bytes(gzip.compress(json.dumps(kept, ensure_ascii=False, indent=0).encode(), mtime=0))


class Player(Tape):
    """Plays a recording; `unknown` are the calls it has no answer to."""

    def __init__(self, path: Path, key: str) -> None:
        kept = json.loads(gzip.decompress(path.read_bytes()))
        self.about, self.scenes = kept["about"], kept["scenes"]
        self._answers: dict[tuple[str, ...], list[Exchange]] = {}
        for exchange in kept["exchanges"]:
            self._answers.setdefault(_known_by(exchange), []).append(exchange)
        self.unknown: list[str] = []
        self.people = _People(self._act, None)
        super().__init__(key)

    def answer(self, call: Exchange, authorization: str) -> Exchange:
        found = self._answers.get(_known_by(call), [])
        now = [exchange for exchange in found if exchange["scene"] == self.scene]
        if len(now) > 1:
            found.remove(now[0])
        earlier = [exchange for exchange in found if exchange["scene"] < self.scene]
        if not now and not earlier:
            self.unknown.append(f"scene {self.scene}: {call['method']} {call['path']} {call['query']}")
            return {"status": 404, "json": {"detail": "not on the tape"}}
        return (now or earlier[-1:])[0]

    def _act(self, real: None, name: str, arguments: list[Any]) -> Any:
        with self.lock:
            scene = self.scenes[self.scene]
            self.scene += 1
        assert (scene["did"], scene["with"]) == (name, arguments)
        return scene["result"]


class _People:
    """What people do, by the names of methods."""

    def __init__(self, act: Callable[..., Any], real: object) -> None:
        self._act, self._real = act, real

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self._act(getattr(self._real, name, None), name, list(arguments))


def _known_by(call: Exchange) -> tuple[str, ...]:
    query = {name: _TIME.sub(r'\1"then"', value) for name, value in call["query"].items()}
    return (call["method"], call["path"], json.dumps(query, sort_keys=True), str(call["known"]))


def _clean(value: Any) -> Any:
    """What an answer holds without what is nobody's business: tokens, and fields about accounts."""
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items() if name not in _PRIVATE}
    return value


_PRIVATE = frozenset(
    ("token", "unique_id", "task_data_login", "task_data_password", "avatar", "phone", "last_activity")
)
