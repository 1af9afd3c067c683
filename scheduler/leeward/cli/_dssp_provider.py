"""A service provider of DSSP as a process: its agent, and what its clients ask it over HTTP.

| request | answer |
| --- | --- |
| PUT /services/NAME {"capability", "areas", "rate", "percent", "objective_s", "rank", "weight"} | 200, as below |
| GET /services/NAME | 200 {"name", "ready", "members": {domain: {"accepted", "why", "least_s"}}} |
| DELETE /services/NAME | 204 |
| POST /queries {"service", "areas"} | 200 {"mean", "count", "seconds", "answered", "missing", "late", ...} |
| POST /rounds {"service", "areas", "period_s", "rounds", "trigger"} | 200, a line of JSON for each that is reported |
| GET /state | 200 {"services": {name: {"queries", "late", "p_s", "weight", ...}}, "domains", "traffic"} |
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from leeward.adapters.organisations.links import Address
from leeward.adapters.organisations.process import MemberProcess
from leeward.adapters.organisations.serving import caller
from leeward.cli._dssp_registering import authority_of, client_of, refusal, registered, server_tls_of
from leeward.core import fields
from leeward.core.errors import LeewardError
from leeward.core.fields import FieldError
from leeward.policies.dssp.agents.documents import (
    query_from_json,
    result_to_json,
    service_from_json,
    subscription_from_json,
)
from leeward.policies.dssp.agents.messages import KINDS
from leeward.policies.dssp.agents.pools import Service, Standing
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings, Result
from leeward.policies.dssp.agents.subscriptions import Round, Skipped, Subscriptions
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.organisation_files import ProviderFile

_log = logging.getLogger(__name__)

#: For all domains of a new pool to tell their terms, s.
SETTLE_S = 5.0
#: Latencies of a service that its figures are taken from.
LATEST = 2000
#: Of subscriptions, s.
BEAT_S = 0.1
#: Between two looks into the registry for domains that are new, s.
LOOK_S = 2.0


def serve_provider(
    file: ProviderFile, *, callers: dict[str, str], tokens: dict[str, str], stop: Callable[[], asyncio.Event]
) -> None:
    """Until the event that `stop` makes, in the loop, is set. Raises LeewardError."""
    asyncio.run(_Served(file, callers, tokens).run(stop))


@dataclass(slots=True)
class _Figures:
    """Of a service."""

    objective_s: float
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))
    queries: int = 0
    late: int = 0
    over: int = 0  #: took longer than the objective
    partial: int = 0


class _Served:
    def __init__(self, file: ProviderFile, callers: dict[str, str], tokens: dict[str, str]) -> None:
        self._file, self._tokens, self._registry = file, tokens, client_of(file, tokens["registry"])
        self._provider = Provider(file.name, ProviderSettings(learn=file.learn), incarnation=time.time_ns())
        self._rounds = Subscriptions(self._provider)
        self._figures: dict[str, _Figures] = {}
        self._process = MemberProcess(
            self._provider, KINDS, tokens=callers, seed=0, on_effect=self._carry_out, host=file.listen.host,
            port=file.listen.port, server_tls=server_tls_of(file.listen), client_tls=authority_of(file),
            routes=[
                Route("/services/{name}", self._open, methods=["PUT"]),
                Route("/services/{name}", self._show, methods=["GET"]),
                Route("/services/{name}", self._close, methods=["DELETE"]),
                Route("/queries", self._query, methods=["POST"]),
                Route("/rounds", self._subscribe, methods=["POST"]),
                Route("/state", self._state, methods=["GET"]),
            ],
        )  # fmt: skip

    async def run(self, stop: Callable[[], asyncio.Event]) -> None:
        """Register and serve; closes its services at the end."""
        ending, token = stop(), self._tokens["registry"]
        beats = [asyncio.create_task(self._beat()), asyncio.create_task(self._look_again())]
        try:
            async with (
                self._registry,
                registered(self._process, self._file, "providers", lambda: {"url": self._process.url}, token, ending),
            ):
                for name in [*self._provider.pools]:
                    self._process.take(self._provider.close(name))
        finally:
            for beat in beats:
                beat.cancel()

    async def _beat(self) -> None:
        while True:
            self._process.take(self._rounds.tick(self._process.now()))
            await asyncio.sleep(BEAT_S)

    async def _look_again(self) -> None:
        """Domains that have registered since join the pools of their capability and areas, while queries run."""
        while True:
            await asyncio.sleep(LOOK_S)
            for pool in [*self._provider.pools.values()]:
                try:
                    found = await self._discover(pool.service)
                    domains = self._known(found)
                    self._process.take(self._provider.follow(pool.service.name, domains, self._process.now()))
                except (LeewardError, httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                    _log.info("the pool of %s stays as it is: %s", pool.service.name, error)

    # --- effects

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, Skipped):
            self._tell(effect.round, {"error": effect.error.message, "remedy": effect.error.remedy})
            return
        assert isinstance(effect, Result)
        figures = self._figures[effect.service]
        figures.queries += 1
        figures.late += effect.late
        figures.over += effect.seconds > figures.objective_s
        figures.partial += bool(effect.missing or effect.failed)
        figures.latencies.append(effect.seconds)
        if isinstance(effect.ticket, Round):
            self._tell(effect.ticket, result_to_json(effect) if self._rounds.report(effect) else None)
        elif not effect.ticket.done():
            effect.ticket.set_result(effect)

    def _tell(self, round_: Round, told: dict[str, Any] | None) -> None:
        """A round's client; None: nothing to report, or, after the last round, the end."""
        if told is not None:
            round_.ticket.put_nowait({"round": round_.number, **told})
        if round_.ticket not in self._rounds:
            round_.ticket.put_nowait(None)

    # --- services

    async def _open(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        service = service_from_json(request.path_params["name"], await _json(request))
        found = await self._discover(service)
        domains = self._known(found)
        if not domains:
            names = ", ".join(sorted(found))
            raise FieldError("tokens", names, "are missing", remedy="add those that these domains have given you")
        self._figures.setdefault(service.name, _Figures(service.objective_s)).objective_s = service.objective_s
        known = self._provider.pools.get(service.name)
        before = {name: member.offer for name, member in known.members.items()} if known else {}
        self._process.take(self._provider.open(service, domains.items(), self._process.now()))
        pool, until = self._provider.pools[service.name], time.monotonic() + SETTLE_S
        while time.monotonic() < until and not all(
            member.standing in (Standing.READY, Standing.REFUSED) and member.offer is not before.get(name)
            for name, member in pool.members.items()
        ):
            await asyncio.sleep(0.01)
        return self._shown(service.name, without=sorted(found.keys() - domains.keys()))

    def _known(self, found: dict[str, Any]) -> dict[str, tuple[Area, ...]]:
        """Areas of those that have given this provider a token; their addresses are known from now on."""
        known = {}
        for name, entry in sorted(found.items()):
            if name in self._tokens:
                self._process.links.know(name, Address(url=entry["url"], token=self._tokens[name]))
                known[name] = tuple(Area(*area) for area in entry["areas"])
        return known

    async def _discover(self, service: Service) -> dict[str, Any]:
        """Domains with the capability in some of the areas. Raises LeewardError if there are none in any."""
        found: dict[str, Any] = {}
        nobody = None
        for area in service.areas:
            where = ",".join(map(repr, area.to_json()))
            answer = await self._registry.get("/domains", params={"capability": service.capability, "area": where})
            if answer.status_code == 404:
                nobody = refusal(answer)
                continue
            if answer.is_error:
                raise refusal(answer)
            found |= {entry["name"]: entry for entry in answer.json()["domains"]}
        if not found and nobody is not None:
            raise nobody
        return found

    async def _show(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        name = request.path_params["name"]
        self._provider.pool(name)
        return self._shown(name)

    def _shown(self, name: str, without: Sequence[str] = ()) -> JSONResponse:
        """`without`: domains that have given this provider no token."""
        members = {
            domain: {
                "accepted": member.standing is Standing.READY, "why": member.offer.why if member.offer else "",
                "least_s": member.offer.least_s if member.offer else None,
                "extrapolated": member.offer.extrapolated if member.offer else None,
            }
            for domain, member in sorted(self._provider.pools[name].members.items())
        }  # fmt: skip
        pool = self._provider.pools[name]
        return JSONResponse({"name": name, "ready": pool.ready, "members": members, "without_token": without})

    async def _close(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        self._process.take(self._provider.close(request.path_params["name"]))
        return Response(status_code=204)

    # --- queries

    async def _query(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        service, areas = query_from_json(await _json(request))
        ticket: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._process.take(self._provider.query(ticket, service, areas, self._process.now()))
        return JSONResponse(result_to_json(await ticket))

    async def _subscribe(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        subscription = subscription_from_json(await _json(request))
        self._provider.pool(subscription.service)
        ticket: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._rounds.add(ticket, subscription, self._process.now())

        async def lines() -> AsyncIterator[bytes]:
            try:
                while (told := await ticket.get()) is not None:
                    yield json.dumps(told).encode() + b"\n"
            finally:
                self._rounds.end(ticket)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _state(self, request: Request) -> Response:
        caller(request, self._process.tokens)
        services = {}
        for name, pool in sorted(self._provider.pools.items()):
            figures, service = self._figures[name], pool.service
            latencies = list(figures.latencies)
            services[name] = {
                "queries": figures.queries, "late": figures.late, "over": figures.over,
                "partial": figures.partial, "ready": pool.ready,
                "percent": service.percent, "objective_s": service.objective_s,
                "weight": self._provider.weights.of(name),
                "p_s": float(np.percentile(latencies, service.percent)) if latencies else None,
                "median_s": float(np.median(latencies)) if latencies else None,
            }  # fmt: skip
        counts = self._provider.counts
        return JSONResponse(
            {"services": services, "open_queries": self._provider.open_queries,
             "counts": {name: getattr(counts, name) for name in counts.__slots__},
             "traffic": self._process.traffic.counts()}
        )  # fmt: skip


async def _json(request: Request) -> object:
    return fields.parse_json("body", (await request.body()).decode(errors="replace"))
