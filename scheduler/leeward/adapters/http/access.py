"""Rules of access: the Host and Origin of a browser, the headers of every answer, the token of those who act.

A page of another site can make a browser ask an address of this machine, by a name that it lets point there. Its Host
header then has that name, so only names that the service was told of are answered.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leeward.adapters.http.problems import Problem, Trouble, answer, shown
from leeward.adapters.organisations.tls import is_loopback
from leeward.adapters.organisations.tokens import SHORTEST, Tokens
from leeward.core.errors import ConfigError

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: Names of this machine for itself.
LOCAL = ("localhost", "127.0.0.1", "::1")


def hosts_of(bound: str, named: Collection[str] = ()) -> frozenset[str]:
    """The names under which a service that is bound to an address may be asked."""
    local = LOCAL if is_loopback(bound) else ()
    return frozenset(name.lower() for name in (bound, *local, *named) if name)


def check_reach(host: str, *, encrypted: bool, insecure: bool) -> None:
    """Raises ConfigError if a token would travel in plain text through a network."""
    if not (is_loopback(host) or encrypted or insecure):
        raise ConfigError(
            f"--http: {host} is no loopback address, and the connection would be plain.",
            remedy="Give --tls-cert and --tls-key, or --insecure if a proxy in front encrypts.",
        )


def tokens_of(token: str) -> Tokens | None:
    """The token of the secrets file; None without one. Raises ConfigError for one that can be guessed."""
    if not token:
        return None
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            f"secrets file: service_token has {len(token)} characters, or some that no header can carry.",
            remedy=f"Use {SHORTEST} or more letters and digits, such as those of secrets.token_urlsafe(32).",
        )
    return Tokens({"service": token})


def host_of(header: str) -> str:
    """The name in a Host header, without port and brackets; empty if it cannot be read."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


class Guard:
    """Refuses names that it was not told of with 421, and gives every answer the headers above."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no web sockets here

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        given = Headers(scope=scope).getlist("host")
        if len(given) != 1 or host_of(given[0]) not in self._hosts:
            problem = Problem(
                error="the service is not known under the name in the header Host.",
                remedy=f"Use one of {sorted(self._hosts)}, or name it to leeward serve with --http-name.",
                field="Host", value=shown(", ".join(given)),
            )  # fmt: skip
            await answer(421, problem)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)


def may_act(request: Request, tokens: Tokens | None) -> None:
    """Raises Trouble without the token, and for a page of another site."""
    if tokens is None:
        raise Trouble(
            403,
            Problem(
                error="the service has no service_token, so nobody may act through it.",
                remedy="Put a service_token into the secrets file and start it again; commands act without one.",
            ),
        )
    same_site(request)
    if tokens.name_of(request.headers.get("authorization")) is None:
        raise Trouble(
            401,
            Problem(
                error="the token is missing or wrong.",
                remedy="Send Authorization: Bearer TOKEN, with the service_token of the secrets file.",
                field="Authorization",
            ),
            {"WWW-Authenticate": "Bearer"},
        )


def same_site(request: Request) -> None:
    """Raises Trouble for a page of another site: it may neither act, nor make this machine compute."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
    if origin is not None and urlsplit_netloc(origin) != request.headers.get("host", "").lower():
        field, value = "Origin", origin
    elif site not in ("same-origin", "none"):  # browsers send it with pictures, too, which have no Origin
        field, value = "Sec-Fetch-Site", site
    else:
        return
    raise Trouble(
        403,
        Problem(
            error="a page of another site may not act or compute.",
            remedy="Use the page that the service itself gives.", field=field, value=shown(value),
        ),
    )  # fmt: skip


def urlsplit_netloc(origin: str) -> str:
    """Host and port of an Origin header; empty if it cannot be read."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
