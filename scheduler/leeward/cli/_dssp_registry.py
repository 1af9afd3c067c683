"""The registry of DSSP over HTTP: routes, tokens and the statuses of refusals.

| request | answer |
| --- | --- |
| PUT /domains/NAME {"url", "capabilities", "areas"} | 201 (200: renewed) {"name", "lease_s"} |
| PUT /providers/NAME {"url"} | the same |
| DELETE /domains/NAME, /providers/NAME | 204 |
| GET /domains?capability=TEXT&area=WEST,SOUTH,EAST,NORTH | 200 {"domains": [{"name", "url", ...}]}, by name |
| GET /providers/NAME | 200 {"name", "url"} |
| GET /health, which needs no token | 200 {"status": "ok", "registrations"} |

A refusal is {"error", "field", "value", "remedy"}: 400 malformed, 401 no valid token, 403 the name is another's, 404
nothing there, 413 body too large.  All handlers are coroutines that wait for nothing between reading and writing the
registry, so one event loop is all the locking that it needs.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leeward.adapters.organisations.serving import listen, serve
from leeward.adapters.organisations.tls import refuse_plain, server_tls
from leeward.core.errors import ConfigError
from leeward.core.fields import FieldError, mapping, parse_json
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.registry.entries import DomainEntry, ProviderEntry
from leeward.policies.dssp.registry.registry import HeldError, Kind, Registry, UnmatchedError

#: Bytes of a request's body at most.
LARGEST_BODY = 64 * 1024
#: Letters of a value that a refusal repeats as it is; of a longer one it tells the beginning.
LONGEST_VALUE = 200


class UnauthorizedError(FieldError):
    """The request has no valid token."""


class TooLargeError(FieldError):
    """The request's body is larger than `LARGEST_BODY`."""


#: The first that fits.
STATUS: tuple[tuple[type[FieldError], int], ...] = (
    (UnauthorizedError, 401), (HeldError, 403), (UnmatchedError, 404), (TooLargeError, 413), (FieldError, 400),
)  # fmt: skip


def registry_app(registry: Registry, tokens: Mapping[str, str], clock: Callable[[], float]) -> Starlette:
    """The registry as an ASGI application.

    `tokens`: name of an owner -> its bearer token; `clock`: seconds that never fall, such as time.monotonic.
    Raises FieldError for a token that is empty, not ASCII, or two owners'.
    """
    for owner, token in tokens.items():
        if not token or not token.isascii():
            raise FieldError(f"tokens.{owner}", None, "is not ASCII text", remedy="give a random token")
    if len(set(tokens.values())) < len(tokens):
        raise FieldError("tokens", len(tokens), "two owners have the same token", remedy="give each its own")
    face = _Face(registry, tokens, clock)
    return Starlette(
        routes=[
            Route("/health", face.health, methods=["GET"]),
            Route("/domains", face.discover, methods=["GET"]),
            Route("/domains/{name}", face.put_domain, methods=["PUT"]),
            Route("/domains/{name}", face.delete_domain, methods=["DELETE"]),
            Route("/providers/{name}", face.put_provider, methods=["PUT"]),
            Route("/providers/{name}", face.delete_provider, methods=["DELETE"]),
            Route("/providers/{name}", face.get_provider, methods=["GET"]),
        ],
        exception_handlers={FieldError: _refused, HTTPException: _not_routed},
    )


class _Face:
    """Handlers of one registry."""

    def __init__(self, registry: Registry, tokens: Mapping[str, str], clock: Callable[[], float]) -> None:
        self._registry, self._clock = registry, clock
        self._tokens = {owner: token.encode() for owner, token in tokens.items()}

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "registrations": self._registry.count(self._clock())})

    async def discover(self, request: Request) -> Response:
        self._owner(request)
        capability, area = _parameter(request, "capability"), _parameter(request, "area")
        wanted = Area.from_json("area", parse_json("area", f"[{area}]", value=area))
        found = self._registry.discover(capability, wanted, self._clock())
        return _json(b'{"domains":[%b]}' % b",".join([entry.encoded for entry in found]))

    async def put_domain(self, request: Request) -> Response:
        return await self._put(request, "domain", DomainEntry)

    async def put_provider(self, request: Request) -> Response:
        return await self._put(request, "provider", ProviderEntry)

    async def delete_domain(self, request: Request) -> Response:
        return self._delete(request, DomainEntry)

    async def delete_provider(self, request: Request) -> Response:
        return self._delete(request, ProviderEntry)

    async def get_provider(self, request: Request) -> Response:
        self._owner(request)
        return _json(self._registry.find(ProviderEntry, request.path_params["name"], self._clock()).encoded)

    async def _put(self, request: Request, field: str, kind: Kind) -> Response:
        owner, name = self._owner(request), request.path_params["name"]
        about = mapping(field, parse_json("body", await _body(request)))
        if about.get("name", name) != name:
            raise FieldError(f"{field}.name", about["name"], f"the path says {name!r}", remedy="leave it out")
        entry, now = kind.from_json(field, about | {"name": name}), self._clock()
        if owner != name:  # else providers would give the token of a domain to the owner of another name
            raise HeldError("name", name, "is not the name of this token", remedy=f"register {owner!r}")
        self._registry.expire(now)  # else the entries of those that went without leaving would pile up
        new = self._registry.register(entry, owner, now)
        return _json({"name": name, "lease_s": self._registry.lease_s}, status=201 if new else 200)

    def _delete(self, request: Request, kind: Kind) -> Response:
        self._registry.leave(kind, request.path_params["name"], self._owner(request), self._clock())
        return Response(status_code=204)

    def _owner(self, request: Request) -> str:
        """The name whose token the request has; all tokens are compared, each in constant time."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip().encode()
        owners = [owner for owner, known in self._tokens.items() if hmac.compare_digest(known, given)]
        if scheme.lower() != "bearer" or not owners:
            remedy = "send 'Authorization: Bearer TOKEN' with the token of your organisation"
            raise UnauthorizedError("Authorization", None, "is not a token of this registry", remedy=remedy)
        return owners[0]


def _parameter(request: Request, name: str) -> str:
    """The one value of a parameter of the query."""
    values = request.query_params.getlist(name)
    if len(values) != 1:
        reason = "is missing" if not values else "is given more than once"
        raise FieldError(name, values or None, reason, remedy="ask with ?capability=TEXT&area=WEST,SOUTH,EAST,NORTH")
    return values[0]


async def _body(request: Request) -> str:
    """The text of a body; of one that is too large no more than the limit is kept."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            raise TooLargeError("body", size, f"is larger than {LARGEST_BODY} bytes", remedy="send a shorter one")
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError as error:
        raise FieldError("body", error.object[:20], f"is not UTF-8: {error.reason}", remedy="send UTF-8") from None


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, FieldError)
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    about = {"error": error.message, "field": error.field, "value": _shown(error.value), "remedy": error.remedy}
    response = _json(about, status=status)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status == 413:
        response.headers["Connection"] = "close"  # the rest of the body is not read
    return response


async def _not_routed(request: Request, error: Exception) -> Response:
    """A path or a method that the registry does not have."""
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"[:LONGEST_VALUE]
    known = "GET /domains, PUT or DELETE /domains/NAME, GET, PUT or DELETE /providers/NAME, GET /health"
    about = {"error": error.detail, "field": "path", "value": asked, "remedy": f"Use {known}."}
    response = _json(about, status=error.status_code)
    response.headers.update(error.headers or {})
    return response


def _shown(value: object) -> object:
    """A value as JSON, or the beginning of its text where it is long or cannot be JSON."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    else:
        if len(text) <= LONGEST_VALUE:
            return value
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def _json(content: bytes | dict[str, Any], *, status: int = 200) -> Response:
    """ASCII alone: a value that a refusal repeats may have halves of surrogate pairs, which UTF-8 has not."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Response(body, status_code=status, media_type="application/json")


def serve_registry(
    tokens: Mapping[str, str], *, host: str, port: int, certificate: Path | None, key: Path | None, lease_s: float,
    stop: Callable[[], asyncio.Event],
) -> None:  # fmt: skip
    """Until the event that `stop` makes, in the loop, is set. Raises LeewardError."""
    if (certificate is None) is not (key is None):
        raise ConfigError("--certificate and --key go together.", remedy="Give both, or none.")
    tls = server_tls(certificate, key) if certificate is not None and key is not None else None
    if tls is None:
        refuse_plain("--host", host, "Give --certificate and --key, or serve at 127.0.0.1.")
    app = registry_app(Registry(lease_s), tokens, time.monotonic)

    async def run() -> None:
        listener, started = listen(host, port), asyncio.Event()
        serving = asyncio.create_task(serve(app, listener, stop(), tls=tls, started=started))
        await started.wait()
        await serving

    asyncio.run(run())
