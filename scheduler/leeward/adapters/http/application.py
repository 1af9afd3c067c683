"""The API as a Starlette application: reading is open, acting needs the token; see `paths.py`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from leeward.adapters.http import answers
from leeward.adapters.http.access import Guard, may_act
from leeward.adapters.http.acts import ACTS, NODE_ACTS, Act, NodeAct, Reconfigure
from leeward.adapters.http.asking import Asking, check_named
from leeward.adapters.http.calls import Calls
from leeward.adapters.http.desk import Desk
from leeward.adapters.http.given import body_of, query_of, said
from leeward.adapters.http.metrics import Metrics
from leeward.adapters.http.openapi import document
from leeward.adapters.http.paths import (
    EVENTS,
    READING,
    REQUEST,
    TOPOLOGY,
    EventsQuery,
    Handler,
    HistoryQuery,
    Path,
    SeriesQuery,
)
from leeward.adapters.http.problems import HANDLERS, Problem, Trouble, answer, shown, shown_whole
from leeward.adapters.http.stream import LISTENERS, stream
from leeward.adapters.http.studies import Studies
from leeward.adapters.organisations.serving import LimitBodies
from leeward.adapters.organisations.tokens import Tokens
from leeward.control.report.knowledge import Knowledge
from leeward.control.report.values import Report, summary_of
from leeward.core.errors import LeewardError
from leeward.core.outcome import Ending, Outcome

#: Calls of servers at a time, to read and to act.
CALLS = 16
#: The stored history is waited for so long, s.
HISTORY_S = 3.0


class Api:
    """The handlers of the paths. `stop` ends the live streams."""

    def __init__(
        self, knowledge: Knowledge, desk: Desk, studies: Studies, tokens: Tokens | None, stop: asyncio.Event
    ) -> None:
        self._knowledge, self._desk, self._tokens, self._stop = knowledge, desk, tokens, stop
        self._asking = Asking(studies, lambda request: self._report(request).topology)
        self._read, self._call = Calls(CALLS), Calls(CALLS)  # readers hold no act up
        self._listeners = 0
        self._acts = tuple(answers.ActSeen(name=act.name, about=act.about, plain=act.plain) for act in ACTS)

    def paths(self) -> list[tuple[Path, Handler]]:
        """Every path with its handler."""
        reading: Sequence[Callable[[Request], Any]] = (
            self._topologies, self._topology, self._status, self._history, self._series, self._plan, self._nodes,
        )  # fmt: skip
        found: list[tuple[Path, Handler]] = [
            (path, _saying(path, say)) for path, say in zip(READING, reading, strict=True)
        ]
        found += [(EVENTS, self._events), *self._asking.paths()]
        told = TypeAdapter(answers.RequestAnswer)
        for act in ACTS:
            answered = (
                TypeAdapter(answers.RequestAnswer | dict[str, Any]) if issubclass(act.body, Reconfigure) else told
            )
            path = Path(f"{TOPOLOGY}/{act.name}", act.about, answered, "POST", body=act.body, later=True,
                        statuses=(404,), acting=True)  # fmt: skip
            found.append((path, self._act(act, path)))
        asked = Path(
            f"{TOPOLOGY}/requests/{{request}}", "The answer to a request.", told, later=True, statuses=(404, 409, 503)
        )
        found.append((asked, self._asked(asked)))
        for one in NODE_ACTS:
            path = Path(
                f"/api/nodes/{{node}}/{one.name}", one.about, TypeAdapter(answers.DrainAnswer), "POST", acting=True
            )
            found.append((path, self._drain(one, path)))
        return found

    # --- reading

    def _report(self, request: Request) -> Report:
        name = request.path_params["name"]
        report = self._knowledge.report(name)
        if report is None:
            names = ", ".join(self._knowledge.names[:20]) or "none yet"
            raise Trouble(404, Problem("there is no such topology.", f"Served are: {names}.", "name", shown(name)))
        return report

    async def _topologies(self, request: Request) -> answers.Topologies:
        event = self._knowledge.newest_id
        reports = [self._knowledge.report(name) for name in self._knowledge.names]
        return answers.Topologies(
            topologies=tuple(summary_of(report) for report in reports if report), missing=self._knowledge.missing,
            event=event, acts=self._acts, acting=self._tokens is not None,
        )  # fmt: skip

    async def _topology(self, request: Request) -> answers.TopologyAnswer:
        event = self._knowledge.newest_id
        report = self._report(request)
        return answers.TopologyAnswer(report=report, event=event, served=report.topology in self._desk.served())

    async def _status(self, request: Request) -> object:
        name = self._report(request).topology
        return await self._read.shared(name, lambda: self._desk.status(name))

    async def _history(self, request: Request) -> answers.HistoryAnswer:
        report, query = self._report(request), query_of(request, HistoryQuery)
        name, why = report.topology, ""
        try:
            stored = await asyncio.wait_for(self._read(lambda: self._desk.history(name)), HISTORY_S)
        except LeewardError as error:
            stored, why = (), str(error)
        except TimeoutError:
            stored, why = (), f"ZooKeeper has not answered in {HISTORY_S:g} s."
        newest = self._knowledge.timeline(name, stored)[-query.last :]
        return answers.HistoryAnswer(
            topology=name, current=report.current, reconfigurations=newest,
            complete=not why, why=why,
        )  # fmt: skip

    async def _series(self, request: Request) -> answers.SeriesAnswer:
        name, query = self._report(request).topology, query_of(request, SeriesQuery)
        # beside the loop, as all points of many components take longer than a listener to events shall wait
        series = await asyncio.to_thread(self._knowledge.series, name, tuple(query.figure), query.since)
        return answers.SeriesAnswer(
            topology=name, figures=self._knowledge.figures(name), t=series.t, values=series.values
        )

    async def _plan(self, request: Request) -> answers.PlanAnswer:
        report = self._report(request)
        plan = report.plan
        return answers.PlanAnswer(
            topology=report.topology, now=report.deployment, before=report.before, plan=plan,
            difference=plan.changes if plan else (), why=plan.reason if plan else "", refusals=report.refusals,
        )  # fmt: skip

    async def _nodes(self, request: Request) -> answers.NodesAnswer:
        report = self._report(request)
        moving = {change.component: change.after for change in report.current.changes} if report.current else {}
        return answers.NodesAnswer(
            topology=report.topology, nodes=self._knowledge.nodes(report.topology), moving=moving
        )

    async def _events(self, request: Request) -> Response:
        query = query_of(request, EventsQuery)
        last, after = request.headers.get("last-event-id"), query.after
        if last:
            if not (last.isascii() and last.isdigit() and len(last) <= 16):
                problem = Problem(
                    "Last-Event-ID is no id of an event.", "Send one as it came.", "Last-Event-ID", shown(last)
                )
                raise Trouble(400, problem)
            after = int(last)
        if request.method == "HEAD":  # it has no body, and would not end
            return Response(media_type=EVENTS.media)
        if self._listeners >= LISTENERS:
            raise Trouble(503, Problem(f"{LISTENERS} listeners are connected.", "Close a page, or ask again later."))

        async def counted() -> Any:
            self._listeners += 1
            try:
                async for chunk in stream(self._knowledge, after, query.topology, self._stop):
                    yield chunk
            finally:
                self._listeners -= 1

        return StreamingResponse(counted(), media_type=EVENTS.media, headers={"X-Accel-Buffering": "no"})

    # --- acting

    def _act(self, act: Act, path: Path) -> Handler:
        async def handle(request: Request) -> Response:
            may_act(request, self._tokens)
            name = self._report(request).topology
            query_of(request, path.query)
            body = await body_of(request, act.body)
            if isinstance(body, Reconfigure):
                check_named(body.named, name)
                if body.dry_run:
                    return said(path, await self._asking.preview(name, body.replicas, force=body.force))
            asked = await self._call(lambda: self._desk.ask(name, act.name, act.request(body)))
            return self._told(path, name, asked, await self._answer(name, asked, body.wait_s))

        return handle

    def _asked(self, path: Path) -> Handler:
        async def handle(request: Request) -> Response:
            name, asked = self._report(request).topology, request.path_params["request"]
            query_of(request, path.query)
            if not REQUEST.fullmatch(asked):
                remedy = "Use the path that the act answered with."
                raise Trouble(404, Problem("there is no such request.", remedy, "request", shown(asked)))
            return self._told(path, name, asked, await self._read(lambda: self._desk.answer(name, asked)))

        return handle

    def _drain(self, act: NodeAct, path: Path) -> Handler:
        async def handle(request: Request) -> Response:
            may_act(request, self._tokens)
            query_of(request, path.query)
            node = request.path_params["node"]
            await self._call(lambda: self._desk.drain(node, act.draining))
            return said(path, answers.DrainAnswer(node=node, draining=act.draining))

        return handle

    async def _answer(self, topology: str, request: str, wait_s: float) -> Outcome | None:
        """Of a request, waited for at most so long and not beyond the end of the service."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended a moment before
                loop.call_soon_threadsafe(came.set)

        until = loop.time() + wait_s
        while True:
            found = await self._call(lambda: self._desk.answer(topology, request, wake))
            left = until - loop.time()
            if found is not None or left <= 0 or self._stop.is_set():
                return found
            came.clear()
            try:
                await asyncio.wait_for(came.wait(), min(left, 1.0))
            except TimeoutError:
                continue

    def _told(self, path: Path, topology: str, request: str, found: Outcome | None) -> Response:
        """200 with how it ended, 202 without an answer yet, 409 if it was refused."""
        if found is not None and found.ending is Ending.REFUSED:
            return answer(409, Problem(f"refused: {shown_whole(found.why)}", "Change the request, or ask again later."))
        told = answers.RequestAnswer(
            topology=topology, request=request, ending=str(found.ending) if found else None,
            why=found.why if found else "", path=f"/api/topologies/{quote(topology, safe='')}/requests/{request}",
        )  # fmt: skip
        return said(path, told, status=200 if found else 202)


def _saying(path: Path, say: Callable[[Request], Any]) -> Handler:
    """A handler that answers with a value."""

    async def handle(request: Request) -> Response:
        if not path.query.model_fields:
            query_of(request, path.query)
        return said(path, await say(request))

    return handle


def application(
    knowledge: Knowledge, desk: Desk, studies: Studies, *, tokens: Tokens | None, hosts: frozenset[str],
    stop: asyncio.Event, more: Sequence[BaseRoute] = (),
) -> Starlette:  # fmt: skip
    """The API, its OpenAPI and the metrics; `more`: routes beside them."""
    table = Api(knowledge, desk, studies, tokens, stop).paths()
    described = document([path for path, _ in table])

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    measures = Metrics(knowledge)

    async def metrics(request: Request) -> Response:
        # beside the loop: at fifty topologies it takes longer than a listener to events shall wait
        content, kind = await asyncio.to_thread(measures.exposition, request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": kind})

    routes: list[BaseRoute] = [Route(path.path, handle, methods=[path.method]) for path, handle in table]
    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi), Route("/metrics", metrics), *more],
        middleware=[Middleware(Guard, hosts=hosts), Middleware(LimitBodies)], exception_handlers=dict(HANDLERS),
    )  # fmt: skip
    app.router.redirect_slashes = False
    return app
