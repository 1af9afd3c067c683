"""`leeward agent`: the agents of bi-modal links, one beside each server, and tasks that they map by messages."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from leeward.cli._common import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_REFUSED, refusing, sigterm_interrupts, until_told
from leeward.cli._output import Output, OutputOption, document_text

if TYPE_CHECKING:
    from leeward.policies.bimodal.mapping.messages import Told
    from leeward.policies.bimodal.mapping.rules import Method
    from leeward.policies.bimodal.model.agents_file import Agents
    from leeward.policies.bimodal.model.values import Task

#: Until a dead server is left out, and what was reserved for it is free, unless the command line says otherwise, s.
LEASE_S = 30.0
#: Between two questions how far a task is, s.
ASKED_S = 0.1
#: An agent that is told to end has ended after so long, s.
ENDS_S = 5.0
#: Of gossip in the time of a lease: news has to go round before it counts as old.
ROUNDS = 30

AgentsFile = Annotated[Path, typer.Argument(metavar="AGENTS.json", help="Servers, addresses and dedicated links.")]
Secret = Annotated[Path, typer.Option(help="File with the secret that all agents share, 16 bytes or more.")]


def register(app: typer.Typer) -> None:
    """Adds `agent` and its sub-commands to the command line."""
    agent = typer.Typer(help="Map tasks onto servers by messages between them (bi-modal links).", no_args_is_help=True)
    agent.command("run")(run)
    agent.command("map")(map_command)
    agent.command("end")(end)
    agent.command("ways")(ways)
    app.add_typer(agent, name="agent")


def run(
    file: AgentsFile,
    secret: Secret,
    server: Annotated[int | None, typer.Option(help="Number of the server that this agent stands for.")] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="An agent for each server, each a process of its own.")
    ] = False,
    method: Annotated[str, typer.Option(help="survey (ours), least-cost, annealed or random.")] = "survey",
    lease: Annotated[float, typer.Option(min=1.0, help="Seconds until a dead server is left out.")] = LEASE_S,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
    reallocate: Annotated[
        float, typer.Option(min=0.0, help="Seconds between two times that stream hops get ways anew; 0: never.")
    ] = 0.0,
    cluster: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Local cluster with a public network: set routes, and learn what hops carry."),
    ] = None,
) -> None:
    """Run the agent of one server, or of all on this machine, until stopped.

    Example: leeward agent run agents.json --secret key --server 3
    """
    from leeward.core.errors import LeewardError
    from leeward.policies.bimodal.model.agents_file import read_agents, read_secret

    with refusing():
        if everyone == (server is not None):
            raise LeewardError("which agent is not clear.", remedy="Give either --server N or --all.")
        common = _Common(
            agents=read_agents(file), key=read_secret(secret), method=_method(method), lease_s=lease, seed=seed,
            reallocate_s=reallocate or None, cluster=cluster,
        )  # fmt: skip
        chosen = sorted(common.agents.addresses) if server is None else [server]
        for one in chosen:
            if one not in common.agents.addresses:
                raise LeewardError(f"--server {one}: there is no such server.", remedy=f"Take one of {file}.")
            if cluster and one not in common.agents.nodes:
                raise LeewardError(f"server {one} has no node.", remedy=f"Give each server in {file} a node.")
        if server is None:
            _serve_all(common)
        else:
            _serve(common, server)


def map_command(
    file: AgentsFile,
    task: Annotated[Path, typer.Argument(metavar="TASK.json", help="A task, or a list of tasks, with names.")],
    secret: Secret,
    wait: Annotated[float, typer.Option(help="Seconds to wait for all.")] = 60.0,
    output: OutputOption = Output.table,
) -> None:
    """Submit tasks to their delivery servers, and wait until each runs or is refused.

    Example: leeward agent map agents.json task.json --secret key
    """
    from leeward.core.errors import LeewardError
    from leeward.policies.bimodal.model.agents_file import read_agents, read_secret
    from leeward.policies.bimodal.model.values import check_ends, why_impossible

    with refusing():
        agents, key = read_agents(file), read_secret(secret)
        tasks = _tasks(task)
        for one in tasks:
            check_ends(one, agents.network)
            if why := why_impossible(one, agents.network):
                raise LeewardError(
                    f"task {one.name} is refused: {why}.", remedy="Ask for less, or add a server or link."
                )
        document = asyncio.run(map_all(agents, tasks, key, wait))
    if output is Output.table:
        for found in document["tasks"]:
            typer.echo(f"{found['task']}: {found['status']}" + (f" on {found['servers']}" if found["servers"] else ""))
        typer.echo(
            f"{document['seconds']:.2f} s, {document['frames_per_task']:.1f} frames and "
            f"{document['bytes_per_task']:.0f} bytes a task, gossip included"
        )
    else:
        typer.echo(document_text(document, output), nl=False)
    if any(found["status"] != "running" for found in document["tasks"]):
        raise typer.Exit(EXIT_REFUSED)


def end(
    file: AgentsFile,
    name: Annotated[str, typer.Argument(help="Name of the task.")],
    delivery: Annotated[int, typer.Argument(help="Its delivery server.")],
    secret: Secret,
) -> None:
    """Tell the delivery server of a task that it is over: its reservations are released.

    Example: leeward agent end agents.json taxis 4 --secret key
    """
    from leeward.policies.bimodal.model.agents_file import read_agents, read_secret

    with refusing():
        asyncio.run(end_all(read_agents(file), {name: delivery}, read_secret(secret)))


def ways(file: AgentsFile, secret: Secret, output: OutputOption = Output.table) -> None:
    """Show how each stream hop travels now, and what was learned of public paths.

    Example: leeward agent ways agents.json --secret key
    """
    from leeward.policies.bimodal.model.agents_file import read_agents, read_secret

    with refusing():
        document = asyncio.run(ways_of(read_agents(file), read_secret(secret)))
    if output is not Output.table:
        typer.echo(document_text(document, output), nl=False)
        return
    for hop in document["hops"]:
        way = " - ".join(map(str, hop["way"])) or "the public network"
        typer.echo(f"{hop['task']} hop {hop['hop']}: {hop['sender']} to {hop['receiver']} over {way}")
    for path in document["paths"]:
        typer.echo(f"public path {path['sender']} to {path['receiver']}: carries {path['part']:.0%} of what is wanted")


# --- agents


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """Options that all agents of a command share."""

    agents: Agents
    key: bytes
    method: Method
    lease_s: float
    seed: int
    reallocate_s: float | None
    cluster: Path | None


def _serve(common: _Common, me: int) -> None:
    """Until Ctrl-C or SIGTERM."""
    from leeward.adapters.peers import TICK_S, PeerProcess
    from leeward.policies.bimodal.mapping.agent import Agent, Times
    from leeward.policies.bimodal.mapping.messages import KINDS

    agents, lease_s = common.agents, common.lease_s
    peers = tuple(sorted(agents.addresses))
    times = Times(
        lease=lease_s, renewal=lease_s / 3, probe=lease_s / 6, mapping=lease_s / 3, silence=lease_s,
        gossip=lease_s / ROUNDS, reallocation=common.reallocate_s,
    )  # fmt: skip
    agent = Agent(me, agents.network.around(me), method=common.method, times=times, peers=peers, born=time.time_ns())
    process = PeerProcess(
        agent, KINDS, agents.addresses, common.key, seed=common.seed * len(peers) + me,
        tick_s=min(TICK_S, times.gossip),
    )  # fmt: skip
    beside = None
    if common.cluster is not None:
        from leeward.cli._agent_ways import WaysOfCluster

        beside = WaysOfCluster(agent, agents, common.cluster).run

    async def work() -> None:
        stop = until_told()
        ways = asyncio.create_task(beside()) if beside else None
        try:
            await process.run(stop)
        finally:
            if ways is not None:
                ways.cancel()
                await asyncio.gather(ways, return_exceptions=True)

    asyncio.run(work())


def _serve_all(common: _Common) -> None:
    """A child for each, of this process, which ends them all. Raises LeewardError if one of them ends by itself."""
    from leeward.core.errors import LeewardError
    from leeward.local import processes

    sigterm_interrupts()
    children: dict[int, int] = {}  # process -> server
    try:
        for server in sorted(common.agents.addresses):
            child = os.fork()
            if child == 0:
                _serve_as_child(common, server)
            children[child] = server
        typer.echo(f"{len(children)} agents run", err=True)
        ended, _ = os.wait()
        raise LeewardError(f"the agent of server {children.pop(ended)} has ended.", remedy="See its error above.")
    except KeyboardInterrupt:
        return
    finally:
        agents = {one for child in children if (one := processes.process_of(child))}
        # a signal that comes while a child starts may be lost in it
        processes.end_all(lambda: {one for one in agents if processes.is_alive(one)}, grace_s=ENDS_S)


def _serve_as_child(common: _Common, server: int) -> NoReturn:
    """It never goes back into the code of its parent."""
    from leeward.core.errors import LeewardError

    code = EXIT_BAD_INPUT
    try:
        _serve(common, server)
        code = 0
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except (LeewardError, OSError) as error:
        typer.echo(f"error: server {server}: {error}", err=True)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


# --- clients


async def map_all(agents: Agents, tasks: list[Task], key: bytes, wait_s: float) -> dict[str, Any]:
    """Submit all at once; what became of each, and the traffic of all agents meanwhile."""
    from leeward.adapters.peers import AskTraffic, PeerClient
    from leeward.core.errors import LeewardError
    from leeward.policies.bimodal.mapping.messages import KINDS, Asked, Submit

    client = PeerClient(KINDS, agents.addresses, key, number=-os.getpid())
    try:
        before = [await client.ask(server, AskTraffic()) for server in sorted(agents.addresses)]
        began, left = time.monotonic(), {task.name: task for task in tasks}
        for task in tasks:
            await client.send(task.delivery, Submit(spec=task))
        told: dict[str, Told] = {}
        while left:
            for task in list(left.values()):
                answer = await client.ask(task.delivery, Asked(task=task.name))
                if answer.status in ("running", "refused"):
                    told[task.name] = answer
                    del left[task.name]
            if left and time.monotonic() - began > wait_s:
                raise LeewardError(f"no answer for {', '.join(sorted(left))} in {wait_s:g} s.", remedy="Give --wait.")
            await asyncio.sleep(ASKED_S if left else 0)
        seconds = time.monotonic() - began
        after = [await client.ask(server, AskTraffic()) for server in sorted(agents.addresses)]
    finally:
        client.close()
    frames, size = (
        sum(getattr(b, name) - getattr(a, name) for a, b in zip(before, after, strict=True))
        for name in ("sent", "sent_bytes")
    )
    return {
        "tasks": [_told(told[task.name]) for task in tasks], "seconds": round(seconds, 3),
        "frames_per_task": frames / len(tasks), "bytes_per_task": size / len(tasks),
        "dropped": sum(sum(one.dropped.values()) for one in after),
    }  # fmt: skip


def _told(told: Told) -> dict[str, Any]:
    from leeward.policies.bimodal.model.walk import servers_of

    servers = list(servers_of(told.walk)) if told.walk is not None else []
    return {
        "task": told.task, "status": told.status, "servers": servers,
        "cost": told.walk.cost if told.walk else None, "public_hops": told.walk.public if told.walk else None,
    }  # fmt: skip


async def end_all(agents: Agents, tasks: Mapping[str, int], key: bytes) -> None:
    """Tasks are over; `tasks`: name -> delivery server. Raises LeewardError for one that is not known there."""
    from leeward.adapters.peers import PeerClient
    from leeward.core.errors import LeewardError
    from leeward.policies.bimodal.mapping.messages import KINDS, Asked, End

    client = PeerClient(KINDS, agents.addresses, key, number=-os.getpid())
    try:
        for name, delivery in tasks.items():
            if not (await client.ask(delivery, Asked(task=name))).status:
                raise LeewardError(f"server {delivery} knows no task {name!r}.", remedy="Name its delivery server.")
            await client.send(delivery, End(task=name))
    finally:
        client.close()


async def ways_of(agents: Agents, key: bytes) -> dict[str, Any]:
    """Stream hops of all servers with their ways, and the parts that public paths carry."""
    from leeward.adapters.peers import PeerClient
    from leeward.policies.bimodal.mapping.messages import KINDS, AskedWays

    client = PeerClient(KINDS, agents.addresses, key, number=-os.getpid())
    hops, paths = [], []
    try:
        for server in sorted(agents.addresses):
            told = await client.ask(server, AskedWays())
            hops += [{**route._asdict(), "sender": server, "way": list(route.servers)} for route in told.routes]
            paths += [{"sender": server, "receiver": to, "part": part} for to, part in told.paths]
    finally:
        client.close()
    return {"hops": sorted(hops, key=lambda hop: (hop["task"], hop["hop"])), "paths": paths}


async def holding(agents: Agents, key: bytes) -> list[int]:
    """Servers that have reserved something for some task."""
    from leeward.adapters.peers import PeerClient
    from leeward.policies.bimodal.mapping.messages import KINDS, Asked

    client = PeerClient(KINDS, agents.addresses, key, number=-os.getpid())
    try:
        return [server for server in sorted(agents.addresses) if (await client.ask(server, Asked(task=""))).held]
    finally:
        client.close()


# --- files


def _tasks(file: Path) -> list[Task]:
    from leeward.core import fields

    document = fields.read_json(file)
    return _tasks_of(document if isinstance(document, list) else [document])


def _tasks_of(document: list[Any]) -> list[Task]:
    from leeward.core import fields
    from leeward.policies.bimodal.model.document import task_from_json

    found = []
    for position, entry in enumerate(document):
        top = fields.mapping("task", entry, required=("name",))
        name = fields.text(f"tasks[{position}].name", top["name"])
        found.append(task_from_json(name, {key: value for key, value in top.items() if key != "name"}))
    return found


def _method(name: str) -> Method:
    from leeward.core.errors import LeewardError
    from leeward.policies.bimodal.mapping.rules import METHODS

    if name not in METHODS:
        raise LeewardError(f"--method {name}: it is unknown.", remedy=f"Choose one of {', '.join(METHODS)}.")
    return METHODS[name]
