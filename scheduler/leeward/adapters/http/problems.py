"""Errors for people and programs: the fault in a sentence, the field and its value, and a remedy; no traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from leeward.core.errors import ClusterRefusedError, LeewardError, NotReadyError, ProtocolError

#: Characters of a value that an error repeats.
SHOWN = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """The one shape of errors."""

    error: str  #: one sentence
    remedy: str = ""
    field: str = ""  #: name of the parameter, header or field of the body; empty: none of them
    value: str | None = None  #: that it had


class Trouble(Exception):
    """Ends a request with a problem under this status."""

    def __init__(self, status: int, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.error)
        self.status, self.problem, self.headers = status, problem, dict(headers or {})


REMEDIES = {
    404: "See /openapi.json for the paths.",
    405: "Use one of the methods in the header Allow.",
    413: "Send less in one request.",
}
_PROBLEM = TypeAdapter(Problem)


def answer(status: int, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as a response."""
    content = _PROBLEM.dump_json(problem)
    return Response(content, status_code=status, media_type="application/json", headers=dict(headers or {}))


def shown(value: object) -> str:
    """A value as an error repeats it: short, and always text that JSON can carry."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def of_validation(error: ValidationError, where: str) -> Problem:
    """The first thing that a model refuses. `where`: "body" or "query"."""
    first = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or where
    message = first["msg"].removeprefix("Value error, ")
    return Problem(
        error=f"{where} field {shown(name)!r}: {shown(message)}.",
        remedy="See /openapi.json for its type.", field=shown(name), value=shown(first.get("input")),
    )  # fmt: skip


def of_ours(error: LeewardError) -> tuple[int, Problem]:
    """Status and problem of an error made on purpose."""
    theirs = isinstance(error, (ClusterRefusedError, ProtocolError))  # a server's, not the asker's
    status = 503 if theirs else 409 if isinstance(error, NotReadyError) else 400
    return status, Problem(error=shown_whole(error.message), remedy=shown_whole(error.remedy))


def shown_whole(text: str) -> str:
    """Text that JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode()


async def trouble(_: Request, raised: Exception) -> Response:
    """Handles `Trouble`."""
    assert isinstance(raised, Trouble)
    return answer(raised.status, raised.problem, raised.headers)


async def http_error(_: Request, raised: Exception) -> Response:
    """Handles Starlette's own: no such path, no such method, a body that is too large."""
    assert isinstance(raised, HTTPException)
    problem = Problem(error=raised.detail, remedy=REMEDIES.get(raised.status_code, ""))
    return answer(raised.status_code, problem, raised.headers)


async def our_error(_: Request, raised: Exception) -> Response:
    """Handles errors made on purpose."""
    assert isinstance(raised, LeewardError)
    return answer(*of_ours(raised))


async def fault(_: Request, raised: Exception) -> Response:
    """Handles a fault of ours: the log has it, the answer does not."""
    return answer(500, Problem(error="the service failed to answer.", remedy="Read its log."))


HANDLERS: Mapping[Any, Any] = {
    Trouble: trouble, HTTPException: http_error, LeewardError: our_error, Exception: fault,
}  # fmt: skip
