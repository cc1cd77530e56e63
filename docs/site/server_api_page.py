"""Write docs/server-api.md: every operation of the server, from its own OpenAPI document.

Run: python docs/site/server_api_page.py
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from evenhand.server.api import ROUTERS
from evenhand.server.app import create_app
from evenhand.server.settings import Settings

PAGE = Path(__file__).parents[1] / "server-api.md"
Schema = dict[str, Any]
_TITLES = {
    "campaigns": "Campaigns",
    "requests": "Requests",
    "labels": "Labels, pools, losses",
    "corrections": "Corrections",
    "looking": "How a campaign stands",
    "proofs": "Proofs",
    "webhooks": "Webhooks",
    "access": "Tokens and share links",
}


def page() -> str:
    """The whole page: its head stays as it is written."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(f"sqlite:///{folder}/none.db"))
        document = app.openapi()
        app.state.ledger.close()
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    roles = {(route.path, method.lower()): role_of(route) for route in routes for method in route.methods}
    found: dict[str, list[str]] = {tag: [] for tag in _TITLES}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[operation["tags"][0]].append(entry(path, method, operation, roles[path, method], document))
    head = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].rstrip()
    return "\n\n".join([head, *(f"## {_TITLES[tag]}\n\n" + "\n\n".join(parts) for tag, parts in found.items())]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def role_of(route: APIRoute) -> str:
    """The role an operation needs."""
    names = [dependency.call.__doc__ for dependency in route.dependant.dependencies if dependency.call is not None]
    return next((name for name in names if name), "any")


def entry(path: str, method: str, operation: Schema, role: str, document: Schema) -> str:
    """One operation: what it does, who may, what it takes."""
    parts = [f"### `{method.upper()} {path}`", operation["description"].strip(), f"Role: {role}."]
    rows = [
        [f"`{p['name']}`", p["in"], kind(p["schema"], document), cell(p.get("description", ""))]
        for p in operation.get("parameters", ())
        if p["in"] != "path"
    ]
    if rows:
        parts.append(table(["parameter", "in", "type", ""], rows))
    body = operation.get("requestBody")
    if body is not None:
        parts += body_of(body, document)
    return "\n\n".join(parts)


def body_of(body: Schema, document: Schema) -> list[str]:
    """What a body holds: fields of JSON, and the other content types."""
    content, parts = body["content"], []
    others = [f"`{name}`" for name in content if name != "application/json"]
    if "application/json" in content:
        schema = resolved(content["application/json"]["schema"], document)
        needed = schema.get("required", ())
        rows = [
            [f"`{name}`" + (" (needed)" if name in needed else ""), kind(about, document), default(about), cell(about.get("description", ""))]
            for name, about in schema["properties"].items()
        ]  # fmt: skip
        parts += [f"JSON body: {schema.get('description', '')}", table(["field", "type", "default", ""], rows)]
    if others:
        parts.append(f"{'Or a' if parts else 'A'} body of type {', '.join(others)}: {body.get('description', '')}.")
    return parts


def resolved(schema: Schema, document: Schema) -> Schema:
    """A schema, looked up where it is named."""
    if "$ref" in schema:
        found: Schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def kind(schema: Schema, document: Schema) -> str:
    """The type of a value in words."""
    schema = resolved(schema, document)
    if "anyOf" in schema:
        return " or ".join(
            dict.fromkeys(kind(each, document) for each in schema["anyOf"] if each.get("type") != "null")
        )
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {kind(schema['items'], document)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"by name: {kind(schema['additionalProperties'], document)}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return words.get(schema.get("type", ""), schema.get("type", "any"))


def default(schema: Schema) -> str:
    """What a field is where it is left out."""
    value = schema.get("default")
    return "" if value is None or value == {} else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def cell(text: str) -> str:
    """Text in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
