"""The files of a domain and of a provider, JSON: capabilities, nodes, addresses, tokens.

Paths in them are relative to the file.  Tokens are in files of their own (name -> token).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.core.secrets import FILE_VARIABLE, without_password
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.distributions import Shape
from leeward.policies.dssp.model.weights import LEARN


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where an organisation serves; with certificate and key by TLS."""

    host: str
    port: int
    certificate: Path | None
    key: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulated:
    """Nodes that wait for so long and give a random reading: `first` is the number of the first node in the whole
    system, as execution times follow from seed, node and query (simulation/kernel_nodes.py).
    """

    shape: Shape
    seed: int
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Where a topology takes subtasks in and answers them: NAME:asks and NAME:answers (core/asks.py)."""

    redis: str  #: URL, without a password
    stream: str  #: NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFile:
    """An edge node; `command` is run for each subtask, and prints its reading, or a `topology` reads."""

    areas: tuple[Area, ...]
    execution_s: float
    pods: int
    command: tuple[str, ...]
    topology: Streams | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    """The common part."""

    name: str
    listen: Listen
    registry: str  #: URL
    authority: Path | None  #: certificate that signs the others'; None: those that the machine trusts
    callers: Path  #: tokens of those that may call
    tokens: Path  #: tokens for those that it calls: the registry, as "registry", and members


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainFile(Organisation):
    """A domain."""

    capabilities: tuple[str, ...]
    covered: tuple[Area, ...]  #: it registers these, from `covers` or around all nodes: none shows how many there are
    discipline: str
    nodes: tuple[NodeFile, ...]
    emulated: Emulated | None
    scaling: bool
    busy: float | None  #: admit up to this part of a node's time; None: by the paper's formula
    calibrate: int  #: executions of each node before it registers
    patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFile(Organisation):
    """A provider."""

    learn: int  #: queries between two looks at how late its services are; 0: their weights stay as opened


def read_domain(path: Path) -> DomainFile:
    """Raises FieldError naming field, value and remedy; ConfigError if the file cannot be read."""
    optional = ("authority", "discipline", "emulated", "scaling", "busy", "calibrate", "patience_s", "covers")
    top = _object("domain", fields.read_json(path), (*_COMMON, "capabilities", "nodes"), optional)
    emulated = _emulated(top["emulated"]) if top.get("emulated") is not None else None
    nodes = fields.each("nodes", top["nodes"], _node)
    if not nodes:
        raise FieldError("nodes", [], "are none", remedy="give one or more")
    for number, node in enumerate(nodes):
        if not node.command and node.topology is None and emulated is None:
            remedy = "give it a command that prints a reading, or a topology, or give the domain `emulated`"
            raise FieldError(f"nodes[{number}].command", [], "is missing", remedy=remedy)
    busy = fields.number("busy", top["busy"]) if top.get("busy") is not None else None
    if busy is not None:
        fields.check_number("busy", busy, positive=True)
    covered = fields.each("covers", top["covers"], Area.from_json) if top.get("covers") else (hull(nodes),)
    calibrate, patience_s = fields.whole("calibrate", top.get("calibrate", 200)), top.get("patience_s", 10.0)
    fields.check_number("calibrate", calibrate)
    fields.check_number("patience_s", fields.number("patience_s", patience_s), positive=True)
    return DomainFile(
        **_common(top, path.parent), capabilities=fields.each("capabilities", top["capabilities"], fields.text),
        discipline=fields.text("discipline", top.get("discipline", "dssp-salvage")), nodes=nodes, emulated=emulated,
        scaling=_flag("scaling", top.get("scaling", False)), busy=busy, covered=covered, calibrate=calibrate,
        patience_s=float(patience_s),
    )  # fmt: skip


def hull(nodes: Sequence[NodeFile]) -> Area:
    """The smallest area around all nodes; of all longitudes, if some node's area goes over the date line."""
    boxes = [box for node in nodes for area in node.areas for box in area.boxes()]
    around = any(area.west > area.east for node in nodes for area in node.areas)
    west, east = (-180.0, 180.0) if around else (min(box[0] for box in boxes), max(box[2] for box in boxes))
    return Area(west, min(box[1] for box in boxes), east, max(box[3] for box in boxes))


def read_provider(path: Path) -> ProviderFile:
    """As `read_domain`."""
    top = _object("provider", fields.read_json(path), _COMMON, ("authority", "learn"))
    learn = fields.whole("learn", top.get("learn", LEARN))
    fields.check_number("learn", learn)
    return ProviderFile(**_common(top, path.parent), learn=learn)


def _object(field: str, value: object, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    return fields.mapping(field, value, frozenset(required + optional), required=required)


_COMMON = ("name", "listen", "registry", "callers", "tokens")


def _common(top: dict[str, Any], folder: Path) -> dict[str, Any]:
    listen = _object("listen", top["listen"], ("port",), ("host", "certificate", "key"))
    if ("certificate" in listen) is not ("key" in listen):
        raise FieldError("listen", sorted(listen), "has one of certificate and key", remedy="give both, or none")

    def path(field: str, value: object) -> Path | None:
        return folder / fields.text(field, value) if value is not None else None

    return {
        "name": fields.text("name", top["name"]), "registry": fields.text("registry", top["registry"]),
        "authority": path("authority", top.get("authority")), "callers": path("callers", top["callers"]),
        "tokens": path("tokens", top["tokens"]),
        "listen": Listen(
            host=fields.text("listen.host", listen.get("host", "127.0.0.1")),
            port=fields.whole("listen.port", listen["port"]),
            certificate=path("listen.certificate", listen.get("certificate")),
            key=path("listen.key", listen.get("key")),
        ),
    }  # fmt: skip


def _node(field: str, value: object) -> NodeFile:
    top = _object(field, value, ("areas", "execution_s"), ("pods", "command", "topology"))
    areas = fields.each(f"{field}.areas", top["areas"], Area.from_json)
    if not areas:
        raise FieldError(f"{field}.areas", [], "are none", remedy="give one or more")
    execution_s = fields.number(f"{field}.execution_s", top["execution_s"])
    fields.check_number(f"{field}.execution_s", execution_s, positive=True)
    pods = fields.whole(f"{field}.pods", top.get("pods", 1))
    fields.check_number(f"{field}.pods", pods, positive=True)
    command = fields.each(f"{field}.command", top.get("command", []), fields.text)
    topology = _streams(f"{field}.topology", top["topology"]) if top.get("topology") is not None else None
    if command and topology:
        raise FieldError(
            f"{field}.topology", top["topology"], "stands beside a command", remedy="leave one of the two out"
        )
    return NodeFile(areas=areas, execution_s=execution_s, pods=pods, command=command, topology=topology)


def _streams(field: str, value: object) -> Streams:
    top = _object(field, value, ("redis", "stream"), ())
    url, stream = (fields.text(f"{field}.{name}", top[name]) for name in ("redis", "stream"))
    if without_password(url) != url:
        remedy = f"leave it out, and name a secrets file by {FILE_VARIABLE}"
        raise FieldError(f"{field}.redis", without_password(url), "holds a password", remedy=remedy)
    if not url.startswith(_REDIS):
        raise FieldError(f"{field}.redis", url, "is no URL of a Redis", remedy="give redis://host:port/0")
    if not stream:
        raise FieldError(f"{field}.stream", stream, "is empty", remedy="give the name that the topology reads")
    return Streams(redis=url, stream=stream)


_REDIS = ("redis://", "rediss://", "unix://")


def _emulated(value: object) -> Emulated:
    top = _object("emulated", value, ("shape",), ("seed", "first"))
    if top["shape"] not in get_args(Shape):
        raise FieldError(
            "emulated.shape", top["shape"], "is unknown", remedy=f"choose one of {', '.join(get_args(Shape))}"
        )
    seed, first = (fields.whole(f"emulated.{name}", top.get(name, 0)) for name in ("seed", "first"))
    return Emulated(shape=top["shape"], seed=seed, first=first)


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise fields.wrong_type(field, value, "true or false")
    return value
