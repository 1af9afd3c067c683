"""OpenAPI 3.1 of a table of paths, from the models that check requests and write answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from leeward import __version__
from leeward.adapters.http.paths import Path
from leeward.adapters.http.problems import Problem

_REF = "#/components/schemas/{model}"
_MEANINGS = {
    400: "What was sent cannot be read, or names something that is not there.",
    401: "The token is missing or wrong.",
    403: "Nobody may act through this service, or not from that page.",
    404: "There is no such topology or request.",
    409: "It cannot be done now, or is refused.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The service is not known under the name in the header Host.",
    422: "A field is wrong.",
    503: "A server that is needed does not answer or has what cannot be read, or too much is in progress.",
}


def document(paths: Sequence[Path]) -> dict[str, Any]:
    """The document. Pure."""
    adapters: list[tuple[Any, Any, TypeAdapter[Any]]] = [("problem", "serialization", TypeAdapter(Problem))]
    for path in paths:
        adapters.append((_answer(path), "serialization", path.answers))
        adapters += [(_answer(path, media), "serialization", adapter) for media, adapter in path.also.items()]
        if path.body is not None:
            adapters.append((_body(path), "validation", TypeAdapter(path.body)))
    found, definitions = TypeAdapter.json_schemas(adapters, ref_template=_REF)
    schemas = {key: schema for (key, _), schema in found.items()}
    described: dict[str, dict[str, Any]] = {}
    for path in paths:
        described.setdefault(path.path, {})[path.method.lower()] = _operation(path, cast(dict[str, Any], schemas))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Leeward", "version": __version__,
            "description": "The scheduler service. Times are seconds since 1970, rates tuples/s.",
        },
        "paths": described,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def _answer(path: Path, media: str = "") -> str:
    return f"answer of {path.method} {path.path} {media}".rstrip()


def _body(path: Path) -> str:
    return f"body of {path.method} {path.path}"


def _operation(path: Path, schemas: dict[str, Any]) -> dict[str, Any]:
    content = {path.media: {"schema": schemas[_answer(path)]}}
    content |= {media: {"schema": schemas[_answer(path, media)]} for media in path.also}
    good = {"description": path.about, "content": content}
    bad = {
        str(status): {
            "description": _MEANINGS[status], "content": {"application/json": {"schema": schemas["problem"]}},
        }
        for status in _statuses(path)
    }  # fmt: skip
    operation: dict[str, Any] = {
        "operationId": f"{path.method.lower()}{re.sub(r'[^a-z]+', '_', path.path)}".rstrip("_"),
        "summary": path.about,
        "parameters": [*_in_path(path), *_in_query(path)],
        "responses": {"200": good, **({"202": good} if path.later else {}), **bad},
    }
    if path.acting:
        operation["security"] = [{"token": []}]
    if path.body is not None:
        given = {"application/json": {"schema": schemas[_body(path)]}}
        operation["requestBody"] = {"required": True, "content": given}
    return operation


def _statuses(path: Path) -> list[int]:
    acting = (401, 403, 409, 413, 415, 503) if path.acting else (413, 415) if path.body is not None else ()
    return sorted({400, 421, 422, *acting, *path.statuses})


def _in_path(path: Path) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", path.path)
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _in_query(path: Path) -> list[dict[str, Any]]:
    properties = TypeAdapter(path.query).json_schema().get("properties", {})
    return [
        {
            "name": name, "in": "query", "required": False, "description": schema.pop("description", ""),
            "schema": schema,
        }
        for name, schema in properties.items()
    ]  # fmt: skip
