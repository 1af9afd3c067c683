"""A network as a document, as `tomllib` reads a network file, and back. No I/O.

[inside]                        # between nodes of one site; also as `inside = {...}` of a site
delay_ms = 0.5

[[site]]
id = "north"

[[node]]                        # the one called "cloud", or with role = "nimbus", has Nimbus, ZooKeeper, Redis
id = "north-1"
site = "north"
meta = { class = "edge", speed = 0.5 }  # facts for policies

[[link]]
between = ["core", "north"]     # both directions; `from` and `to`: this direction alone
delay_ms = 20
rate_mbps = 100                 # left out: no limit
loss = 0.001
queue_ms = 200                  # or queue_packets
shared = true                   # left out: each pair of nodes has the rate for itself

[public]                        # a public network; every [[link]] is then dedicated, used by routes alone
uplink_mbps = 20                # of each node; also as `uplink_mbps` of a [[node]]
delay_ms = 10
sigma = 0.5                     # of log2(a path's rate / its median), drawn anew
every_ms = 1000                 # so often
uneven = 0.25                   # of log2(a path's median / the uplink), drawn once
queue_ms = 200                  # or "none": no packet is dropped
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from leeward.core.errors import ConfigError
from leeward.core.network import (
    NIMBUS,
    NOTHING,
    QUEUE_MS,
    ROLES,
    WORKER,
    Link,
    Network,
    NetworkNode,
    Pair,
    Public,
    Site,
)

CLOUD = "cloud"
#: Form of an id: nodes are host names.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
#: Form of the name of a fact.
FACT = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")

DELAY_MS_MAX = 10_000.0
RATE_MBPS_MIN, RATE_MBPS_MAX = 0.01, 100_000.0
QUEUE_MS_MAX = 60_000.0
QUEUE_PACKETS_MAX = 1_000_000
MTU_MIN, MTU_MAX = 1280, 65_000
SIGMA_MAX = UNEVEN_MAX = 4.0
EVERY_MS_MIN, EVERY_MS_MAX = 1.0, 3_600_000.0
#: As `queue_ms` of a public network: packets wait as long as it takes.
NO_QUEUE = "none"
_LINK = tuple(entry.name for entry in fields(Link))


def parse_network(document: Mapping[str, object]) -> Network:
    """The network that a document describes. Raises ConfigError, which names table, field, value and remedy."""
    top = _Table("network", document)
    near = _link(top.table("inside"), NOTHING)
    sites = tuple(_site(table, near) for table in top.tables("site"))
    nodes = tuple(_node(table) for table in top.tables("node"))
    links = _links(top.tables("link"))
    has_public, table = top.has("public"), top.table("public")
    public = _public(table) if has_public else None
    seed, mtu = top.whole("seed", 0, 0, 2**63 - 1), top.whole("mtu", 9000, MTU_MIN, MTU_MAX)
    top.end()  # before sites, nodes and links are looked at together: a misspelt word is why they do not fit
    return Network(sites=sites, nodes=nodes, links=links, seed=seed, mtu=mtu, public=public)


def network_document(network: Network) -> dict[str, object]:
    """The document of a network: plain values; `parse_network` makes an equal network of it."""
    return {
        "seed": network.seed,
        "mtu": network.mtu,
        **({"public": _public_document(network.public)} if network.public else {}),
        "site": [{"id": site.id, "inside": _link_document(site.inside)} for site in network.sites],
        "node": [_node_document(node) for node in network.nodes],
        "link": [{"from": a, "to": b, **_link_document(link)} for (a, b), link in network.links.items()],
    }


def network_text(network: Network) -> str:
    """A network file (TOML) of a network."""
    document = network_document(network)
    lines = [f"{name} = {_toml(value)}" for name, value in document.items() if not isinstance(value, list | Mapping)]
    for name, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    for name, tables in document.items():
        for table in tables if isinstance(tables, list) else ():
            lines += ["", f"[[{name}]]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Texts here are names and facts; JSON writes these, numbers and flags as TOML does."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{key}" = {_toml(one)}' for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _node_document(node: NetworkNode) -> dict[str, object]:
    meta = {"meta": dict(node.meta)} if node.meta else {}
    uplink = {} if node.uplink_mbps is None else {"uplink_mbps": node.uplink_mbps}
    return {"id": node.id, "site": node.site, "role": node.role, **meta, **uplink}


def _public_document(public: Public) -> dict[str, object]:
    return asdict(public) | {"queue_ms": NO_QUEUE if public.queue_ms is None else public.queue_ms}


def _link_document(link: Link) -> dict[str, object]:
    return {name: value for name in _LINK if (value := getattr(link, name)) is not None}


def _site(table: _Table, near: Link) -> Site:
    site = Site(id=table.name("id"), inside=_link(table.table("inside"), near))
    table.end()
    return site


def _node(table: _Table) -> NetworkNode:
    id = table.name("id")
    role = table.text("role", NIMBUS if id == CLOUD else WORKER)
    if role not in ROLES:
        raise table.error("role", role, f"Choose one of {', '.join(ROLES)}.")
    node = NetworkNode(
        id=id,
        site=table.name("site"),
        role=role,
        meta=table.facts("meta"),
        uplink_mbps=table.number("uplink_mbps", None, RATE_MBPS_MIN, RATE_MBPS_MAX),
    )
    table.end()
    return node


def _public(table: _Table) -> Public:
    if not table.has("uplink_mbps"):
        raise table.error("uplink_mbps", None, f"Give a number from {RATE_MBPS_MIN:g} to {RATE_MBPS_MAX:g}.")
    endless = table.value("queue_ms") == NO_QUEUE and table.text("queue_ms", NO_QUEUE)
    public = Public(
        uplink_mbps=table.number("uplink_mbps", None, RATE_MBPS_MIN, RATE_MBPS_MAX),
        delay_ms=table.number("delay_ms", 0.0, 0.0, DELAY_MS_MAX),
        sigma=table.number("sigma", 0.0, 0.0, SIGMA_MAX),
        every_ms=table.number("every_ms", 1000.0, EVERY_MS_MIN, EVERY_MS_MAX),
        uneven=table.number("uneven", 0.0, 0.0, UNEVEN_MAX),
        queue_ms=None if endless else table.number("queue_ms", QUEUE_MS, 0.0, QUEUE_MS_MAX),
    )
    table.end()
    return public


def _links(tables: list[_Table]) -> dict[Pair, Link]:
    """Both directions of what is said of two sites; one direction alone goes before that."""
    both: dict[Pair, Link] = {}
    single: dict[Pair, Link] = {}
    for table in tables:
        if table.has("between"):
            a, b = table.two_names("between")
            ways, into = dict.fromkeys([(a, b), (b, a)]), both
        else:
            ways, into = dict.fromkeys([(table.name("from"), table.name("to"))]), single
        link = _link(table, NOTHING)
        for way in ways:
            if way in into:
                raise table.error("between" if into is both else "from", " to ".join(way), "Say it once.")
            into[way] = link
    return both | single


def _link(table: _Table, base: Link) -> Link:
    """A link's fields; missing ones are as in `base`."""
    if table.has("queue_ms") and table.has("queue_packets"):
        raise table.error("queue_packets", table.value("queue_packets"), "Give either it or queue_ms.")
    packets = table.whole("queue_packets", base.queue_packets, 1, QUEUE_PACKETS_MAX)
    if table.has("queue_ms"):
        packets = None
    near_ms = base.queue_ms if base.queue_ms is not None else QUEUE_MS
    link = Link(
        delay_ms=table.number("delay_ms", base.delay_ms, 0.0, DELAY_MS_MAX),
        rate_mbps=table.number("rate_mbps", base.rate_mbps, RATE_MBPS_MIN, RATE_MBPS_MAX),
        loss=table.number("loss", base.loss, 0.0, 1.0),
        queue_ms=table.number("queue_ms", near_ms, 0.0, QUEUE_MS_MAX) if packets is None else None,
        queue_packets=packets,
        shared=table.flag("shared", base.shared),
    )
    table.end()
    return link


class _Table:
    """Takes fields out of a table of the document; at its `end` none may be left."""

    def __init__(self, path: str, values: object) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(f"{path}: {values!r} is no table.", remedy="Write it as key = value lines.")
        self._path, self._values = path, dict(values)
        self._known: list[str] = []

    def has(self, field: str) -> bool:
        return field in self._values

    def value(self, field: str) -> Any:
        return self._values.get(field)

    def error(self, field: str, value: object, remedy: str) -> ConfigError:
        """That `value` may not be what `field` is."""
        return ConfigError(f"{self._path}: {field}: {value!r} is not allowed.", remedy=remedy)

    def number(self, field: str, default: float | None, low: float, high: float) -> Any:
        value = self._take(field, default)
        if value is default:
            return default
        if type(value) not in (int, float) or not math.isfinite(value) or not low <= value <= high:
            raise self.error(field, value, f"Give a number from {low:g} to {high:g}.")
        return float(value)

    def whole(self, field: str, default: int | None, low: int, high: int) -> Any:
        value = self._take(field, default)
        if value is not default and (type(value) is not int or not low <= value <= high):
            raise self.error(field, value, f"Give a whole number from {low} to {high}.")
        return value

    def flag(self, field: str, default: bool) -> bool:
        value = self._take(field, default)
        if type(value) is not bool:
            raise self.error(field, value, "Give true or false.")
        return value

    def text(self, field: str, default: str) -> str:
        value = self._take(field, default)
        if type(value) is not str:
            raise self.error(field, value, "Give a text.")
        return value

    def name(self, field: str) -> str:
        return self._checked_name(field, self._take(field, None))

    def two_names(self, field: str) -> tuple[str, str]:
        value = self._take(field, None)
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise self.error(field, value, 'Give two sites: ["core", "north"].')
        return self._checked_name(field, value[0]), self._checked_name(field, value[1])

    def facts(self, field: str) -> dict[str, str]:
        """A table of names of the file's own; numbers and flags as their texts."""
        values = self._take(field, {})
        if not isinstance(values, Mapping):
            raise self.error(field, values, 'Write a table, such as { class = "edge" }.')
        return {name: self._fact(field, name, value) for name, value in values.items()}

    def _fact(self, field: str, name: object, value: object) -> str:
        if type(name) is not str or not FACT.fullmatch(name):
            raise self.error(field, name, "Give names of letters, digits, `_`, `.` and `-`.")
        if type(value) not in (str, int, float, bool) or (type(value) is float and not math.isfinite(value)):
            raise self.error(f"{field}.{name}", value, "Give a text, a number, true or false.")
        return str(value).lower() if type(value) is bool else str(value)

    def table(self, field: str) -> _Table:
        return _Table(f"{self._path}: {field}", self._take(field, {}))

    def tables(self, field: str) -> list[_Table]:
        value = self._take(field, [])
        if not isinstance(value, list | tuple):
            raise self.error(field, value, f"Write [[{field}]] above each.")
        return [_Table(f"{self._path}: {field} {n}", values) for n, values in enumerate(value, 1)]

    def end(self) -> None:
        """Raise ConfigError if a field is left that nobody took."""
        for field, value in self._values.items():
            raise ConfigError(
                f"{self._path}: {field}: {value!r} is not known here.", remedy=f"Known: {', '.join(self._known)}."
            )

    def _take(self, field: str, default: Any) -> Any:
        if field not in self._known:
            self._known.append(field)
        return self._values.pop(field, default)

    def _checked_name(self, field: str, value: object) -> str:
        if type(value) is not str or not NAME.fullmatch(value):
            raise self.error(field, value, "Give at most 40 of a-z, 0-9 and -, as in a host name.")
        return value
