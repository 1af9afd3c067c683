"""A member as a process: its links, its routes and its clock, in one event loop.

The wiring gives a member, its tokens and addresses, routes for its clients, and a function that carries out effects.
Routes and executors feed events back with `take` and `post`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from leeward.adapters.organisations.channels import Accepted
from leeward.adapters.organisations.links import LINK_PATH, Address, Links, Rules, Traffic
from leeward.adapters.organisations.serving import LARGEST_BODY, application, caller, error, listen, serve
from leeward.adapters.organisations.tls import refuse_plain
from leeward.adapters.organisations.tokens import Tokens
from leeward.adapters.ticks import ticking
from leeward.core.errors import LeewardError
from leeward.core.members import Member, To, ToAll

TICK_S = 0.05

_log = logging.getLogger(__name__)


class MemberProcess:
    """See the module.

    `kinds`: the protocol's types of messages; `tokens`: name -> token of those that may call; `addresses`: of peers
    that the member may call; `on_effect`: carries out an effect, in the event loop and without waiting.
    Raises ConfigError if an address is wrong, or would be plain beyond this machine.
    """

    def __init__(
        self, member: Member, kinds: Sequence[type], *, tokens: Mapping[str, str], seed: int,
        on_effect: Callable[[Any], None], addresses: Mapping[str, Address] | None = None, host: str = "127.0.0.1",
        port: int = 0, server_tls: ssl.SSLContext | None = None, client_tls: ssl.SSLContext | None = None,
        routes: Sequence[BaseRoute] = (), tick_s: float = TICK_S, rules: Rules | None = None,
        largest_body: int = LARGEST_BODY,
    ) -> None:  # fmt: skip
        if server_tls is None:
            refuse_plain("address to serve at", host, "Give a certificate and its key, or serve at 127.0.0.1.")
        self.member, self.rng, self.tokens = member, Random(seed), Tokens(tokens)
        self.started, self.port = asyncio.Event(), port  #: `port` is the real one when `started` is set
        self.ending = asyncio.Event()  #: a route that waits for an answer waits for this, too
        self._host, self._server_tls, self._tick_s, self._on_effect = host, server_tls, tick_s, on_effect
        # chance of its own: when links break must not change what the member draws
        self.links = Links(
            kinds, self._receive, callers=self.tokens.names - {member.name}, addresses=addresses or {},
            rng=Random(f"{seed} links"), tls=client_tls, rules=rules,
        )  # fmt: skip
        self._app = application([WebSocketRoute(LINK_PATH, self._link), *routes], largest_body)
        self._outputs: deque[Any] = deque()
        self._taking = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def traffic(self) -> Traffic:
        """Counts for metrics."""
        return self.links.traffic

    @property
    def url(self) -> str:
        """Of this process, when `started` is set."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'http' if self._server_tls is None else 'https'}://{host}:{self.port}"

    def now(self) -> float:
        """The member's time, s."""
        return time.monotonic()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; leaves no task. Raises LeewardError if the address is taken, and any error of a tick."""
        self._loop = asyncio.get_running_loop()
        listener = listen(self._host, self.port)
        self.port = listener.getsockname()[1]
        serving = asyncio.create_task(
            serve(
                self._app, listener, self.ending, tls=self._server_tls, started=self.started,
                before_end=self.links.close, largest_frame=self.links.rules.largest,
            )
        )  # fmt: skip
        try:
            await ticking(self._tick, self._tick_s, stop, serving)
        finally:
            self.ending.set()
            await serving

    def post(self, call: Callable[[float, Random], Iterable[Any]]) -> None:
        """From any thread: call with time and chance in the event loop, and take all that it returns.

        After the end of the process nothing happens.
        """
        if self._loop is None:
            raise LeewardError(f"{self.member.name} has not begun.", remedy="Post when `started` is set.")
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._called, call)

    def take(self, outputs: Iterable[Any]) -> None:
        """In the event loop: send the messages among these and carry out the effects, in their order.

        Messages to the member itself are taken in at once, and all that follows. Never raises: a fault is logged and
        counted, so that one message or effect does not keep the others back.
        """
        self._outputs.extend(outputs)
        if self._taking:  # an effect has led to more; the loop below goes on with it
            return
        self._taking = True
        try:
            while self._outputs:
                self._guarded(self._put, self._outputs.popleft())
        finally:
            self._taking = False

    # --- events

    def _tick(self) -> None:
        self.take(self.member.tick(self.now(), self.rng))

    def _receive(self, sender: str, message: Any) -> None:
        self._guarded(self._received, sender, message)

    def _received(self, sender: str, message: Any) -> None:
        self.take(self.member.receive(sender, message, self.now(), self.rng))

    def _called(self, call: Callable[[float, Random], Iterable[Any]]) -> None:
        self._guarded(lambda: self.take(call(self.now(), self.rng)))

    def _put(self, output: Any) -> None:
        if isinstance(output, ToAll):
            self.links.send_all(output.names, output.message)
        elif not isinstance(output, To):
            self._on_effect(output)
        elif output.name == self.member.name:
            self._outputs.extendleft(
                reversed(self.member.receive(output.name, output.message, self.now(), self.rng))
            )  # fmt: skip
        else:
            self.links.send(output.name, output.message)

    def _guarded(self, call: Callable[..., None], *values: Any) -> None:
        """A peer's message must not end this process, whatever it leads to."""
        try:
            call(*values)
        except LeewardError as fault:
            self.traffic.dropped["failed"] += 1
            _log.warning("%s: %s", self.member.name, fault)
        except Exception:
            self.traffic.dropped["failed"] += 1
            _log.exception("%s failed on %s", self.member.name, [type(value).__name__ for value in values])

    # --- links of others

    async def _link(self, websocket: WebSocket) -> None:
        try:
            name = caller(websocket, self.tokens)
        except HTTPException as refused:
            self.traffic.unopened["unauthorised"] += 1
            answer = error(refused.status_code, refused.detail, headers=dict(refused.headers or {}))
            await websocket.send_denial_response(answer)
            return
        if name == self.member.name:
            self.traffic.unopened["unauthorised"] += 1
            await websocket.send_denial_response(error(403, "a link to itself is not allowed."))
            return
        await websocket.accept()
        await self.links.serve(name, Accepted(websocket))
