"""The process of `leeward overlay serve`: the agent's datagrams on one thread, the service while it is elected."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.adapters.clock import SystemClock
from leeward.adapters.datagrams import Address, DatagramProcess, address_of, number_of
from leeward.adapters.events import configure_logs
from leeward.adapters.wiring import sink_of
from leeward.cli._common import until_told
from leeward.policies.agiledart.deployment.agent import Agent
from leeward.policies.agiledart.deployment.messages import KINDS
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.overlay.neighbours import Times

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import EventSink

#: Of a heartbeat: until an acknowledgement is missed, between two ticks, and between two looks for the log.
ACK, TICK, LOOK = 0.1, 0.05, 0.1
#: Until the loop has told a thread the agents near this one, s.
NEAR_S = 2.0
#: Settings of the service unless others are given: a topology is planned before Storm places it (ADR 39).
DEFAULTS = ("policy=agiledart-overlay", "look_s=0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An agent as its command describes it."""

    address: Address
    key: bytes
    seeds: tuple[Address, ...]
    zone: str
    name: str
    capacity: int
    heartbeat_s: float
    #: of the fragments of others' state that it keeps, and how many MB at most; None: it keeps none
    fragments: Path | None = None
    most_mb: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads:
    """The cluster whose topologies it leads while it is elected."""

    addresses: Addresses
    config: Path | None
    options: tuple[str, ...]


def run(node: Node, leads: Leads | None, events: Path | None) -> None:
    """Until Ctrl-C or SIGTERM; then it leaves the overlay. Raises LeewardError if its id is taken, OSError if its
    address is, ConfigError for wrong settings."""
    configure_logs()
    sink = sink_of(events, SystemClock())
    service = _Service(node, leads, sink) if leads else None
    me = number_of(*node.address)
    times = Times(heartbeat=node.heartbeat_s, ack=node.heartbeat_s * ACK)
    agent = Agent(
        contact(id_of(node.name), me), machine=node.name, times=times, seeds=[number_of(*one) for one in node.seeds],
        born=time.time_ns(), zone=node.zone, capacity=node.capacity,
    )  # fmt: skip
    agent.neighbours.keeps = node.fragments is not None
    process = DatagramProcess(agent, KINDS, node.key, seed=me, tick_s=node.heartbeat_s * TICK)

    async def work() -> None:
        with _keeping(node, agent, asyncio.get_running_loop()):
            await _run(process, agent, service, sink)

    asyncio.run(work())


@contextmanager
def _keeping(node: Node, agent: Agent, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Serve fragments at the node's address over TCP, by threads, until the block is left; none for some nodes."""
    if node.fragments is None:
        yield
        return
    from leeward.adapters.fragment_agent import FragmentAgent, FragmentFiles

    async def addresses() -> list[str]:
        return ["{}:{}".format(*address_of(one.at)) for one in agent.neighbours.keeping()]

    def near() -> list[str]:
        """Asked by a thread: the tables belong to the loop's."""
        if loop.is_closed():
            raise ConnectionError("the agent ends")
        return asyncio.run_coroutine_threadsafe(addresses(), loop).result(NEAR_S)

    files = FragmentFiles(node.fragments, int(node.most_mb * 1e6))
    server = FragmentAgent(files, node.address, node.key, near)
    threading.Thread(target=server.run, name="leeward-fragments", daemon=True).start()
    try:
        yield
    finally:
        server.close()


async def _run(process: DatagramProcess, agent: Agent, service: _Service | None, sink: EventSink) -> None:
    stop, closed = until_told(), asyncio.Event()
    running = asyncio.create_task(process.run(closed))
    watching = asyncio.create_task(_watch(agent, sink, stop))
    leading = None
    if service is not None:
        ended = threading.Event()
        leading = asyncio.create_task(
            asyncio.to_thread(service.run, lambda: agent.state == "joined" and agent.schedulers.active, ended)
        )
    try:
        await asyncio.wait((asyncio.create_task(stop.wait()), running), return_when=asyncio.FIRST_COMPLETED)
        if leading is not None:
            ended.set()
            await leading  # lets go of its locks, so the next scheduler leads at once
        if process.listening and agent.state == "joined":
            process.act(lambda now, rng: agent.leave(now))
    finally:
        closed.set()
        await running
        await watching
    if (refusal := agent.refusal()) is not None:
        raise refusal


async def _watch(agent: Agent, sink: EventSink, stop: asyncio.Event) -> None:
    """Events for the log. Ends the process if the overlay refuses the node."""
    state, schedules = "joining", False
    while not stop.is_set():
        if agent.state != state:
            state = agent.state
            sink.emit("overlay", {"node": agent.machine, "state": state, "hops": agent.join_hops})
        if agent.schedulers.active != schedules:
            schedules = agent.schedulers.active
            sink.emit("scheduler", {"node": agent.machine, "zone": agent.schedulers.zone, "elected": schedules})
        while agent.owners.ended:
            told = agent.owners.ended.popleft()
            hosts = {one.operator: one.machine for one in told.hosts}
            fields = {"application": told.application, "status": told.status, "why": told.why, "hosts": hosts}
            sink.emit("application", fields)
        if state == "refused":
            stop.set()
        await asyncio.sleep(agent.times.heartbeat * LOOK)


class _Service:
    """The ordinary service, for all topologies, while the agent is a scheduler. Construction checks the settings."""

    def __init__(self, node: Node, leads: Leads, sink: EventSink) -> None:
        from leeward.adapters.datagram_post import DatagramPost
        from leeward.cli._service import settings_of
        from leeward.control.registry import Policies

        self._leads, self._sink = leads, sink
        self._chosen = settings_of(leads.config, [*DEFAULTS, *leads.options])
        self._policies = Policies(self._chosen, lambda directory: DatagramPost(directory.kinds, node.address, node.key))
        for name in ("", *self._chosen.topologies):
            self._policies.of(name)  # refuses wrong settings before the agent begins

    def run(self, elected: Callable[[], bool], stop: threading.Event) -> None:
        """Until `stop`."""
        from leeward.adapters.serving import serve_all
        from leeward.control.elected import while_elected

        def work(over: threading.Event) -> None:
            serve_all(self._leads.addresses, self._chosen, self._policies, self._sink, over)

        while_elected(elected, work, self._sink, stop)
