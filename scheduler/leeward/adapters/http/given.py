"""Parts of requests, read by their models, and values as responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from leeward.adapters.http.paths import Path
from leeward.adapters.http.problems import Problem, Trouble, of_validation, shown

M = TypeVar("M", bound=BaseModel)


def said(path: Path, value: object, status: int = 200) -> Response:
    """A value as the answer of a path."""
    return Response(path.answers.dump_json(value), status_code=status, media_type=path.media)


def query_of(request: Request, model: type[M]) -> M:
    """The parameters of a request. Raises Trouble (422)."""
    given: dict[str, Any] = {}
    fields: Mapping[str, Any] = model.model_fields
    for name, value in request.query_params.multi_items():
        if name in fields and "list" in str(fields[name].annotation):
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return _checked(model, given, "query")


async def body_of(request: Request, model: type[M]) -> M:
    """The body of a request. Raises Trouble (400, 415, 422), HTTPException (413)."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        problem = Problem(
            "the body is not said to be JSON.", "Send Content-Type: application/json.", "Content-Type", shown(kind)
        )
        raise Trouble(415, problem)
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Trouble(400, Problem(f"the body is not JSON: {shown(str(error))}.", "Send one JSON object.")) from None
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        problem = Problem("the body has half of a surrogate pair, which no answer can repeat.", "Send whole ones.")
        raise Trouble(422, problem) from None
    return _checked(model, content, "body")


def _checked(model: type[M], content: object, where: str) -> M:
    try:
        return TypeAdapter(model).validate_python(content)
    except ValidationError as error:
        raise Trouble(422, of_validation(error, where)) from None
