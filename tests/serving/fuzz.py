"""Random requests for every operation that the OpenAPI document has: no internal error, no answer it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode
from tests.serving.process import call

NAMES = ("plain", "plain", "pool", "pool", "closed", "missing")
_CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
# a stream has no end to wait for, so only its refusals are looked at here
_STREAM = "/api/campaigns/{name}/stream"
_CLOSE = "/api/campaigns/{name}/close"


def prepare(port: int) -> None:
    """Campaigns to send requests to: one with requests open, one with a pool, one that is closed."""
    for name in ("plain", "closed", "closing"):
        body = {"name": name, "groups": ["u", "v"], "budget": 100_000, "batch": 2, "strategy": "uniform"}
        assert call(port, "POST", "/api/campaigns", body)[0] == 201
    call(port, "POST", "/api/campaigns/plain/ask", {"count": 5})
    rows = {"X": [[0.0, 1.0], [1.0, 0.5], [0.2, 0.1], [2.0, 1.0]], "y": [0, 1, 0, 1], "ids": ["0", "a", "b", "c"]}
    assert call(port, "POST", "/api/campaigns/plain/requests/1/tell", rows)[0] == 200
    call(port, "POST", "/api/campaigns/closed/close", {})
    assert (
        call(port, "POST", "/api/campaigns", {"name": "pool", "groups": None, "budget": 10_000, "learner": "none"})[0]
        == 201
    )
    prepare_pool(port)


def prepare_pool(port: int) -> None:
    table = "id,group,x\n" + "".join(f"{k},{'uv'[k % 2]},{k}\n" for k in range(2000))
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/campaigns/pool/pool", table, {"Content-Type": "text/csv"})
    assert connection.getresponse().status == 201
    connection.close()
    call(port, "POST", "/api/campaigns/pool/ask", {"count": 5})


def admin(port: int) -> dict[str, str]:
    """The header of an admin's token, without which random requests lock everybody out by making one themselves."""
    status, made = call(port, "POST", "/api/tokens", {"name": "fuzz", "role": "admin"})
    assert status == 201
    return {"Authorization": f"Bearer {made['token']}"}


def fuzz(port: int, cases: int, headers: dict[str, str], seed: int = 0) -> dict[str, Any]:
    """So many cases of every operation; gives how many there were, their statuses, and what was wrong."""
    schema = schemathesis.openapi.from_dict(call(port, "GET", "/openapi.json", **headers)[1])
    counted: dict[str, Counter[int]] = {}
    wrong: list[str] = []
    with requests.Session() as session:
        session.headers.update(headers)
        for result in schema.get_all_operations():
            operation = result.ok()
            label = f"{operation.method.upper()} {operation.path}"
            counted[label] = _one(operation, cases, seed, wrong, lambda case: _send(case, port, session))
    return {
        "operations": len(counted),
        "cases": sum(found.total() for found in counted.values()),
        "fewest": min(found.total() for found in counted.values()),
        "statuses": dict(sorted(sum(counted.values(), Counter()).items())),
        "accepted": sum(any(status < 300 for status in found) for found in counted.values()),
        "wrong": wrong,
    }


def _send(case: Any, port: int, session: requests.Session) -> Any:
    return case.call(base_url=f"http://127.0.0.1:{port}", session=session, timeout=60)


def _one(operation: Any, cases: int, seed: int, wrong: list[str], send: Callable[[Any], Any]) -> Counter[int]:
    counted: Counter[int] = Counter()
    label = f"{operation.method.upper()} {operation.path}"
    checks = [CHECKS.get_one(name) for name in _CHECKS]
    names = {_STREAM: ("missing",), _CLOSE: ("closing", "missing")}.get(operation.path, NAMES)
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    known = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    def run(case: Any, name: str, number: int, ours: bool) -> None:
        path = case.path_parameters
        if path and "name" in path and (ours or operation.path == _STREAM):
            path["name"] = name
        if path and "request" in path and ours:
            path["request"] = number
        response = send(case)
        counted[response.status_code] += 1
        try:
            case.validate_response(response, checks=checks)
        except (Exception, BaseExceptionGroup) as error:
            wrong.append(f"{label}: {response.status_code} {str(error)[:1500]}")

    while counted.total() < cases:  # an operation with few different requests has them sent again
        missing, before = cases - counted.total(), counted.total()
        limits = hypothesis.settings(
            max_examples=missing, deadline=None, database=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        chances = st.sampled_from((True,) * 9 + (False,))
        test = given(known, st.sampled_from(names), st.integers(1, 12), chances)(run)
        try:
            hypothesis.seed(seed + before)(limits(test))()
        except (Exception, BaseExceptionGroup) as error:
            wrong.append(f"{label}: {type(error).__name__} {str(error)[:1500]}")
            break
    return counted
