"""Random requests for every operation of the OpenAPI document: the short form of `python -m benchmarks.server --only fuzz`."""

from __future__ import annotations

from tests.serving.fuzz import admin, fuzz, prepare
from tests.serving.process import Server, call


def test_no_operation_fails_or_answers_what_the_document_does_not_know(postgres_url: str) -> None:
    server = Server(postgres_url)
    try:
        prepare(server.port)
        headers = admin(server.port)
        found = fuzz(server.port, 3, headers)
        # what random requests found on PostgreSQL: it has no text with a NUL, and must not be blamed for that
        odd = call(server.port, "POST", "/api/campaigns/pool/labels", {"labels": {"a\0b": 1}}, **headers)
    finally:
        server.stop()
    assert found["wrong"] == []
    assert (odd[0], odd[1]["code"]) == (422, "input")
    assert found["fewest"] >= 3
    assert found["operations"] >= 40
