"""The file that agents start from (JSON, `bimodal-agents/1`): servers with their addresses, and dedicated links.

    {"format": "bimodal-agents/1", "direction": "each",
     "servers": [{"id": 0, "cpu": 4, "services": [1, 2], "uplink": 2, "address": "127.0.0.1:7000", "node": "v0"}, ...],
     "links": [{"a": 0, "b": 1, "bandwidth": 10, "cost": 1, "delay": 0.005}, ...]}

`node`, which may be left out, is the host name of the server's supervisor as Storm knows it.  Each agent takes its own
server, its links and the addresses out of the file, and nothing else.  Units as in `model/values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from leeward.core import fields
from leeward.core.errors import ConfigError
from leeward.core.fields import FieldError
from leeward.policies.bimodal.model.document import link_from_json, server_from_json
from leeward.policies.bimodal.model.values import Direction, Network

FORMAT = "bimodal-agents/1"
#: Bytes of a secret, at least.
LEAST_SECRET = 16
Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Servers and links, and where each server's agent listens."""

    network: Network
    addresses: Mapping[int, Address]
    nodes: Mapping[int, str]  #: server -> node of Storm, of those that have one


def read_agents(path: Path) -> Agents:
    """The agents of a file; raises `FieldError` also where it cannot be read or is not JSON."""
    return agents_from_json(fields.read_json(path))


def agents_from_json(document: object) -> Agents:
    """Raises `FieldError` naming the first wrong field."""
    names = ("format", "direction", "servers", "links")
    top = fields.mapping("the document", document, frozenset(names), required=names)
    if top["format"] != FORMAT:
        raise FieldError("format", top["format"], "is another format", remedy=f"give {FORMAT}")
    directions = get_args(Direction)
    if top["direction"] not in directions:
        raise FieldError("direction", top["direction"], "is unknown", remedy=f"choose one of {', '.join(directions)}")
    addresses: dict[int, Address] = {}
    nodes: dict[int, str] = {}

    def server(field: str, value: object) -> object:
        entry = fields.mapping(field, value, required=("id", "address"))
        address = _address(f"{field}.address", entry["address"])
        found = server_from_json(field, {key: one for key, one in entry.items() if key not in ("address", "node")})
        addresses[found.id] = address
        if "node" in entry:
            nodes[found.id] = fields.text(f"{field}.node", entry["node"])
        return found

    servers = fields.each("servers", top["servers"], server)
    links = fields.each("links", top["links"], link_from_json)
    network = Network(servers, links, direction=top["direction"])  # type: ignore[arg-type]
    return Agents(network=network, addresses=addresses, nodes=nodes)


def agents_to_json(agents: Agents) -> dict[str, Any]:
    """The document of these agents; `agents_from_json` reads it back."""
    servers = [
        {
            "id": v, "cpu": server.cpu, "services": sorted(server.services), "uplink": server.uplink,
            "address": "{}:{}".format(*agents.addresses[v]),
        }
        | ({"node": agents.nodes[v]} if v in agents.nodes else {})
        for v, server in sorted(agents.network.servers.items())
    ]  # fmt: skip
    links = [
        {"a": one.a, "b": one.b, "bandwidth": one.bandwidth, "cost": one.cost, "delay": one.delay}
        for _, one in sorted(agents.network.links.items())
    ]
    return {"format": FORMAT, "direction": agents.network.direction, "servers": servers, "links": links}


def read_secret(path: Path) -> bytes:
    """The secret in a file, without white space around it. Raises ConfigError if it cannot be read or is short."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).", remedy="Name a file with a secret.") from None
    if len(key) < LEAST_SECRET:
        raise ConfigError(
            f"{path}: the secret has {len(key)} bytes.", remedy=f"Give {LEAST_SECRET} or more: openssl rand -hex 32"
        )
    return key


def _address(field: str, value: object) -> Address:
    host, _, port = fields.text(field, value).rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise FieldError(field, value, "is not host:port", remedy="give host:port")
    return host, int(port)
