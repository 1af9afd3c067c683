"""`leeward overlay`: agents that find each other, elect schedulers and place topologies by messages (AgileDART)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import EXIT_REFUSED, refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    EventsOption,
    NimbusOption,
    RedisOption,
    SetOption,
    ZooKeeperOption,
)

if TYPE_CHECKING:
    from leeward.adapters.datagrams import DatagramClient
    from leeward.policies.agiledart.deployment.messages import Announce

#: An answer is waited for so long, s, so often; between two questions how far an application is, s.
ANSWER_S, TRIES, ASKED_S = 1.0, 5, 0.5

Address = Annotated[str, typer.Argument(metavar="HOST:PORT", help="Address of an agent.")]
Secrets = Annotated[Path, typer.Option(envvar="LEEWARD_SECRETS", help="The cluster's secrets file, with agent_secret.")]
#: Fields of an operator in a file.
OPERATOR = frozenset({"name", "reads", "nodes"})
#: A client's work: with the client, and the number of the agent.
Work = Callable[["DatagramClient", int], Awaitable[Any]]


def register(app: typer.Typer) -> None:
    """Adds `overlay` and its sub-commands to the command line."""
    overlay = typer.Typer(
        help="Place topologies without a central service, by agents beside the supervisors (AgileDART).",
        no_args_is_help=True,
    )
    overlay.command("serve")(serve)
    overlay.command("status")(status)
    overlay.command("place")(place)
    overlay.command("end")(end)
    app.add_typer(overlay, name="overlay")


def serve(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where to listen, and where others reach it.")],
    secrets: Secrets,
    join: Annotated[
        list[str] | None, typer.Option("--join", metavar="HOST:PORT", help="Agents to join by; none: begin an overlay.")
    ] = None,
    zone: Annotated[str, typer.Option(help="Zone of this node, of which it may become a scheduler.")] = "zone",
    name: Annotated[str, typer.Option(help="Host name of its supervisor, as Storm knows it; default: this host.")] = "",
    capacity: Annotated[
        int, typer.Option(min=0, help="Operators that it holds: slots of its supervisor times eps_max.")
    ] = 16,
    heartbeat: Annotated[float, typer.Option(min=0.1, help="Seconds between heartbeats, the same for all.")] = 2.0,
    fragments: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also keep fragments of other nodes' state, on the same port over TCP."),
    ] = None,
    most_mb: Annotated[float, typer.Option(min=0.001, help="Keep at most so many MB of them.")] = 10_000.0,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    options: SetOption = None,
    events: EventsOption = None,
) -> None:
    """Run the agent of one node until stopped.

    With --nimbus or --cluster it leads the topologies while it is elected as a scheduler, as `leeward serve` would.
    With --fragments it keeps checkpoints as `leeward fragments serve` would, and tells tasks which others near it do.
    Example: leeward overlay serve 10.0.0.7:6800 --join 10.0.0.1:6800 --zone north --secrets secrets.json
    """
    from leeward.cli._overlay_serve import Node, run

    with refusing():
        node = Node(
            address=_split(address), key=_key(secrets), seeds=tuple(_split(one) for one in join or ()), zone=zone,
            name=name or socket.gethostname(), capacity=capacity, heartbeat_s=heartbeat, fragments=fragments,
            most_mb=most_mb,
        )  # fmt: skip
        leads = None
        if nimbus or cluster:
            from leeward.cli._overlay_serve import Leads
            from leeward.cli._service import addresses_of

            leads = Leads(
                addresses=addresses_of(nimbus, zookeeper, redis, cluster), config=config, options=tuple(options or ())
            )
        run(node, leads, events)


def status(address: Address, secrets: Secrets, output: OutputOption = Output.table) -> None:
    """Show one agent: its neighbours, its scheduler's part, the operators that it holds and the applications it owns.

    Those of its neighbours that keep fragments are in the order in which tasks use them.

    Example: leeward overlay status 10.0.0.7:6800 --secrets secrets.json
    """
    from leeward.policies.agiledart.deployment.messages import AskRooms, RoomsAre
    from leeward.policies.agiledart.overlay.messages import AskState, StateIs

    async def ask(client: DatagramClient, to: int) -> tuple[StateIs, RoomsAre | None]:
        state = await _ask(client, to, AskState(), StateIs)
        rooms = await _ask(client, to, AskRooms(), RoomsAre) if state.state == "joined" else None
        return state, rooms

    with refusing():
        state, rooms = _with_client(address, secrets, ask)
    from leeward.adapters.datagrams import address_of

    document: dict[str, Any] = {
        "id": state.me.node.hex(), "state": state.state, "zone": state.zone, "scheduler": state.schedules,
        "applications_served": state.served,
        "neighbours": ["{}:{}".format(*address_of(leaf.at)) for leaf in state.leaves],
        "fragments_near": ["{}:{}".format(*address_of(leaf.at)) for leaf in state.keeping],
    }  # fmt: skip
    if rooms is not None:
        document |= {
            "name": rooms.machine, "capacity": rooms.capacity, "held": rooms.held,
            "operators": [{"application": one, "operator": operator} for one, operator in rooms.operators],
            "owned": [{"application": one, "status": told} for one, told in rooms.owned],
        }  # fmt: skip
    show(document, output)


def place(
    address: Address,
    file: Annotated[Path, typer.Argument(metavar="APPS.json", help="Applications: name -> operators, see below.")],
    secrets: Secrets,
    zone: Annotated[str, typer.Option(help="Zone whose schedulers place them; default: the agent's own.")] = "",
    wait: Annotated[float, typer.Option(help="Seconds to wait for all.")] = 60.0,
    output: OutputOption = Output.table,
) -> None:
    """Announce applications to an agent, their owner from then on, and wait until each is placed or refused.

    An operator is {"name": "count", "reads": ["parse"], "nodes": ["node1"]}; "nodes": only these may host it.
    Example: leeward overlay place 10.0.0.7:6800 apps.json --secrets secrets.json
    """
    with refusing():
        announced = read_applications(file, zone)

        async def ask(client: DatagramClient, to: int) -> dict[str, Any]:
            return await place_all(client, dict.fromkeys(announced, to), wait)

        document = _with_client(address, secrets, ask)
    show(document, output)
    if any(one["status"] != "placed" for one in document["applications"]):
        raise typer.Exit(EXIT_REFUSED)


def end(
    address: Address,
    application: Annotated[str, typer.Argument(metavar="APPLICATION", help="Its name.")],
    secrets: Secrets,
) -> None:
    """Tell the owner of an application that it is over: its rooms are released.

    Example: leeward overlay end 10.0.0.7:6800 taxis --secrets secrets.json
    """
    from leeward.core.errors import LeewardError
    from leeward.policies.agiledart.deployment.messages import AskPlacement, Over, PlacementIs

    async def ask(client: DatagramClient, to: int) -> None:
        if (await _ask(client, to, AskPlacement(application=application), PlacementIs)).status == "unknown":
            raise LeewardError(
                f"agent {address} owns no application {application!r}.",
                remedy="Name its owner.",
            )
        await _ask(client, to, Over(application=application), PlacementIs)

    with refusing():
        _with_client(address, secrets, ask)


# --- applications


def read_applications(file: Path, zone: str) -> list[Announce]:
    """Of a file. Raises FieldError, LeewardError naming what is wrong."""
    from leeward.core import fields
    from leeward.core.errors import LeewardError
    from leeward.policies.agiledart.deployment.messages import Announce, Wanted
    from leeward.policies.agiledart.overlay.ids import id_of, to_bytes

    document = fields.read_json(file)
    if not isinstance(document, dict) or not document:
        raise LeewardError(f"{file}: it has no applications.", remedy='Write {"name": [operators]}.')
    found = []
    for application, entries in document.items():
        entries = fields.each(application, entries, _operator)
        names: dict[str, int] = {}
        wanted = []
        for position, entry in enumerate(entries):
            where = f"{application}[{position}]"
            reads = fields.each(f"{where}.reads", entry.get("reads", []), fields.text)
            missing = [one for one in reads if one not in names]
            if missing:
                raise LeewardError(
                    f"{where} reads {missing[0]!r}, which is not before it.",
                    remedy="List each operator behind those that it reads.",
                )
            name = fields.text(f"{where}.name", entry["name"])
            nodes = fields.each(f"{where}.nodes", entry.get("nodes", []), fields.text)
            ids = tuple(to_bytes(id_of(one)) for one in nodes)
            wanted.append(Wanted(name=name, upstream=tuple(names[one] for one in reads), nodes=ids))
            names[name] = position
        found.append(Announce(application=application, zone=zone, operators=tuple(wanted)))
    return found


def _operator(where: str, entry: object) -> dict[str, Any]:
    from leeward.core import fields

    return fields.mapping(where, entry, OPERATOR, required=("name",))


async def place_all(client: DatagramClient, owners: dict[Announce, int], wait_s: float) -> dict[str, Any]:
    """Announce applications, each to its owner, and wait for all. Raises LeewardError if that takes too long."""
    from leeward.core.errors import LeewardError
    from leeward.policies.agiledart.deployment.messages import AskPlacement, PlacementIs

    loop = asyncio.get_running_loop()
    began, left = loop.time(), {one.application: to for one, to in owners.items()}
    told: dict[str, tuple[float, PlacementIs]] = {}
    messages: dict[str, Any] = {one.application: one for one in owners}
    for one, to in owners.items():
        client.send(to, one)
    while left:
        await _gather(client, left, told, began, until=loop.time() + ASKED_S)
        if left and loop.time() - began > wait_s:
            raise LeewardError(f"no answer for {', '.join(sorted(left))} in {wait_s:g} s.", remedy="Give --wait.")
        for application, to in left.items():  # an owner that has not heard of it is told again
            known = application in told and told[application][1].status != "unknown"
            client.send(to, AskPlacement(application=application) if known else messages[application])
    rows: list[dict[str, Any]] = [
        {
            "application": name, "status": told[name][1].status, "seconds": round(told[name][0], 6),
            "hosts": {one.operator: one.machine for one in told[name][1].hosts}, "why": told[name][1].why,
        }
        for name in messages
    ]  # fmt: skip
    return {"seconds": max(row["seconds"] for row in rows), "applications": rows}


async def _gather(
    client: DatagramClient, left: dict[str, int], told: dict[str, Any], began: float, *, until: float
) -> None:
    """Answers that come until then; applications that are decided leave `left`."""
    from leeward.policies.agiledart.deployment.messages import PlacementIs

    loop = asyncio.get_running_loop()
    while left and loop.time() < until:
        try:
            answer = await asyncio.wait_for(client.received.get(), until - loop.time())
        except TimeoutError:
            return
        if isinstance(answer, PlacementIs) and answer.application in left:
            told[answer.application] = loop.time() - began, answer
            if answer.status in ("placed", "refused"):
                del left[answer.application]


# --- the edge


def _split(address: str) -> tuple[str, int]:
    """IPv4 address and port; a host name is looked up. Raises LeewardError."""
    from leeward.adapters.datagrams import number_of
    from leeward.core.errors import LeewardError

    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise LeewardError(f"address {address!r} cannot be read.", remedy="Write HOST:PORT.")
    try:
        found = socket.gethostbyname(host)
    except OSError as error:
        raise LeewardError(f"host {host!r} has no address ({error}).", remedy="Give an IPv4 address.") from None
    number_of(found, int(port))
    return found, int(port)


def _key(secrets: Path) -> bytes:
    from leeward.core.errors import ConfigError
    from leeward.wire.secrets import read_secrets

    secret = read_secrets(secrets).agent_secret
    if not secret:
        raise ConfigError(f"secrets file {str(secrets)!r} has no agent_secret.", remedy="Put one into it.")
    return secret.encode()


def _with_client(address: str, secrets: Path, work: Work) -> Any:
    from leeward.adapters.datagrams import DatagramClient, host_towards, number_of
    from leeward.policies.agiledart.deployment.messages import KINDS

    host, port = _split(address)
    key = _key(secrets)

    async def run() -> Any:
        client = await DatagramClient(KINDS, key).open(host_towards(host))
        try:
            return await work(client, number_of(host, port))
        finally:
            client.close()

    return asyncio.run(run())


async def _ask(client: DatagramClient, to: int, message: object, kind: type) -> Any:
    """The answer. Raises LeewardError if there is none."""
    from leeward.adapters.datagrams import address_of
    from leeward.core.errors import LeewardError

    loop = asyncio.get_running_loop()
    for _ in range(TRIES):
        client.send(to, message)
        until = loop.time() + ANSWER_S
        while loop.time() < until:
            try:
                answer = await asyncio.wait_for(client.received.get(), until - loop.time())
            except TimeoutError:
                break
            if isinstance(answer, kind):
                return answer
    host, port = address_of(to)
    raise LeewardError(
        f"agent {host}:{port} does not answer.", remedy="Start it, and give the secrets file that it was started with."
    )
