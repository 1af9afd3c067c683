"""A domain of DSSP as a process: its agent, its nodes as workers, its registration.

`GET /state`, for callers with the domain's own name, tells counts, queue lengths and late starts; no other
organisation gets to see them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from zlib import crc32

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from leeward.adapters.executors import Done, Executors
from leeward.adapters.organisations.process import MemberProcess
from leeward.adapters.organisations.serving import caller
from leeward.adapters.topology_node import TopologyNode
from leeward.cli._dssp_registering import before, registered, server_tls_of
from leeward.control.registry import DISCIPLINES, load
from leeward.core.secrets import FILE_VARIABLE, NO_SECRETS
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node, Scale, Start
from leeward.policies.dssp.agents.messages import KINDS
from leeward.policies.dssp.agents.queues import Subtask
from leeward.policies.dssp.agents.scaling import ScalingSettings
from leeward.policies.dssp.model.organisation_files import DomainFile
from leeward.policies.dssp.simulation.emulated import execution_s, reading_of
from leeward.wire.secrets import read_secrets

#: Calibrating executions of a node at a time.
TOGETHER = 20
#: Between two looks whether all tasks are answered at the end, s.
PAUSE_S = 0.05


def serve_domain(file: DomainFile, *, callers: dict[str, str], token: str, stop: Callable[[], asyncio.Event]) -> None:
    """Until the event that `stop` makes, in the loop, is set. Raises LeewardError."""
    domain = Domain(
        file.name, file.capabilities,
        [Node(areas=node.areas, execution_s=node.execution_s, pods=node.pods) for node in file.nodes],
        DomainSettings(
            discipline=load(file.discipline, DISCIPLINES)(), patience_s=file.patience_s, busy=file.busy,
            scaling=ScalingSettings() if file.scaling else None,
        ),
        time.monotonic(),
    )  # fmt: skip
    executors = Executors(len(file.nodes), _Nodes(file).execute)  # forked before there is an event loop
    asyncio.run(_Served(file, domain, executors, callers, token).run(stop))


class _Served:
    def __init__(
        self, file: DomainFile, domain: Domain, executors: Executors, callers: dict[str, str], token: str
    ) -> None:
        self._file, self._domain, self._executors, self._token = file, domain, executors, token
        self._process = MemberProcess(
            domain, KINDS, tokens=callers, seed=0, on_effect=self._carry_out, host=file.listen.host,
            port=file.listen.port, server_tls=server_tls_of(file.listen),
            routes=[Route("/state", self._state, methods=["GET"])],
        )  # fmt: skip

    async def run(self, stop: Callable[[], asyncio.Event]) -> None:
        """Calibrate, register, and serve; leaves the pools and the registry at the end."""
        ending = stop()
        async with self._executors:
            if not await before(ending, self._calibrate()):
                return
            async with registered(self._process, self._file, "domains", self._about, self._token, ending):
                self._process.take(self._domain.leave())
                until = time.monotonic() + self._file.patience_s
                while self._domain.open_tasks and time.monotonic() < until:
                    await asyncio.sleep(PAUSE_S)

    def _about(self) -> dict[str, Any]:
        areas = [area.to_json() for area in self._file.covered]
        return {"capabilities": [*self._file.capabilities], "areas": areas, "url": self._process.url}

    async def _calibrate(self) -> bool:
        """Measure each node, as many subtasks at a time as it has pods: without that the domain promises nothing.

        An emulated node only waits, and is as fast with more.
        """

        async def one(number: int) -> None:
            node = self._file.nodes[number]
            together = TOGETHER if not node.command and node.topology is None else min(TOGETHER, node.pods)
            for first in range(0, self._file.calibrate, together):
                last = min(first + together, self._file.calibrate)
                done = await asyncio.gather(*(self._executed(number, -1 - piece) for piece in range(first, last)))
                for found in done:
                    if found.value is not None:
                        self._domain.measured(number, found.seconds)

        await asyncio.gather(*(one(number) for number in range(len(self._file.nodes))))
        return True

    async def _executed(self, number: int, query: int) -> Done:
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        now = time.time()
        order = {"query": query, "arrived": now, "due": now + self._file.patience_s, "unloaded": 0.0}
        self._executors.execute(number, order, future.set_result)
        return await future

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, Start):
            subtask = effect.subtask
            order = _order(subtask, time.time() - self._process.now())
            self._executors.execute(subtask.node, order, partial(self._over, effect))
        else:
            assert isinstance(effect, Scale)  # a worker takes as many subtasks at a time as it is given

    def _over(self, start: Start, done: Done) -> None:
        subtask = start.subtask
        now = self._process.now()
        self._process.take(self._domain.executed(subtask.node, subtask.task, done.seconds, done.value, now))

    async def _state(self, request: Request) -> JSONResponse:
        if caller(request, self._process.tokens) != self._domain.name:
            raise HTTPException(403, "the state of a domain is its own.")
        domain = self._domain
        counts = {name: getattr(domain.counts, name) for name in domain.counts.__slots__}
        nodes = [{"waiting": len(queue.waiting), "busy": queue.busy, "pods": queue.pods} for queue in domain.queues]
        return JSONResponse(
            {"name": domain.name, "counts": counts, "open_tasks": domain.open_tasks, "nodes": nodes,
             "traffic": self._process.traffic.counts()}
        )  # fmt: skip


def _order(subtask: Subtask, wall: float) -> dict[str, Any]:
    """For a worker: its times on the wall clock, which is `wall` seconds ahead of the domain's."""
    times = {"arrived": subtask.arrived + wall, "due": subtask.due + wall}
    return {"query": _number(subtask.task[1]), **times, "unloaded": subtask.unloaded}


def _number(query: str) -> int:
    """Of a query at its provider, from 0: emulated execution times follow from it."""
    number = query.rpartition("-")[2]
    return int(number) - 1 if number.isdecimal() else crc32(query.encode())


class _Nodes:
    """The domain's nodes; in a worker, one of them."""

    def __init__(self, file: DomainFile) -> None:
        self._file = file
        handing = any(node.topology for node in file.nodes)
        named = os.environ.get(FILE_VARIABLE) if handing else None
        self._secrets = read_secrets(named) if named else NO_SECRETS
        self._topology: TopologyNode | None = None  # a connection belongs to one process, and to its event loop

    async def execute(self, number: int, order: dict[str, Any]) -> float | None:
        """In a worker: one subtask on its node."""
        node, emulated = self._file.nodes[number], self._file.emulated
        if node.command:
            return await _run(node.command, self._file.patience_s)
        if (streams := node.topology) is not None:
            if self._topology is None:
                self._topology = TopologyNode(
                    streams.redis, streams.stream, patience_s=self._file.patience_s, secrets=self._secrets
                )
            return await self._topology.reading(order)
        assert emulated is not None
        place, query = emulated.first + number, order["query"]
        await asyncio.sleep(execution_s(emulated.shape, node.execution_s, emulated.seed, place, query))
        return reading_of(emulated.seed, place, query)


async def _run(command: tuple[str, ...], patience_s: float) -> float | None:
    """The number that a program prints; None if it fails, prints another thing, or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )  # fmt: skip
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), patience_s)
        return float(printed) if process.returncode == 0 else None
    except (TimeoutError, ValueError):
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and what it has started
