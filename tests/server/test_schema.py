"""Random requests for every operation of the OpenAPI document: the short form of `benchmarks/server.py --only fuzz`."""

from __future__ import annotations

from serving.fuzz import fuzz, prepare
from serving.process import Server


def test_no_operation_fails_or_answers_what_the_document_does_not_know(postgres_url: str) -> None:
    server = Server(postgres_url)
    try:
        prepare(server.port)
        found = fuzz(server.port, 3)
    finally:
        server.stop()
    assert found["wrong"] == []
    assert found["fewest"] >= 3
    assert found["operations"] >= 40
