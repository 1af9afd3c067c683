"""A given instance of AgileDART (`leeward evaluate agiledart FILE`).

    {"scaling": {"x": 4, "second": 6, "r": 100, "q": 50, "R": 1000, "Q": 500, "a": 0.5, "drain_s": 10},
     "recovery": {"S": 60e6, "m": 4, "k": 2, "uplinks": [5e6, 5e6, 5e6, 5e6, 5e6, 5e6], "download": 100e6,
                  "store_uplink": 20e6},
     "paths": {"tau": 20, "c": 0.3, "links": [{"from": 0, "to": 1, "attempts": 4, "delivered": 2}]},
     "placement": {"nodes": 10000, "zones": {"north": 120}, "names": ["v1", "v2"], "key": "app"}}

Each section may be left out, but not all. Optional: `second` (x + 1), `a` (0.5), `drain_s` (30), `need_error` and
`rate_error` (0) in `scaling`; `setup_s`, `coding`, `stripes` in `recovery`; `c` (0.3), `doubt` (0) in `paths`.
Rates are tuples/s in `scaling` and bytes/s in `recovery`. Symbols are those of `scaling/health.py` and
`recovery/tuning.py`. Node 0 of `paths` is the source and the last one the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leeward.core import fields
from leeward.core.errors import ConfigError
from leeward.core.fields import FieldError
from leeward.policies.agiledart.paths.estimates import KlCost, Record, ThompsonCost
from leeward.policies.agiledart.paths.network import Network
from leeward.policies.agiledart.recovery.tuning import Facts
from leeward.policies.agiledart.scaling.health import Load
from leeward.policies.agiledart.settings import AgileDartSettings

#: The range of a number that is to be greater than 0: no formula overflows within it.
LEAST, MOST = 1e-9, 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """One measurement of an operator, and a second number of instances for the secant rule."""

    load: Load
    second: int
    q: float  #: tuples of queue that one instance is worth
    a: float  #: weight of the rate, in [0, 1]
    drain_s: float  #: T_drain
    need_error: float  #: standard error sm of (R + Q/T_drain)/r, as a share of it
    rate_error: float  #: the same of R/r


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A state in m + k fragments, and one central store beside it."""

    size: float  #: S, bytes
    m: int
    k: int
    facts: Facts
    store_uplink: float  #: bytes/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """A network and the record of each of its links."""

    network: Network
    records: tuple[Record, ...]
    tau: float  #: slot, from 1 on
    kl: KlCost
    thompson: ThompsonCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """An overlay of so many nodes, zones with their applications, and a key with the nodes that it may be near."""

    nodes: int | None
    zones: Mapping[str, int]
    names: tuple[str, ...]
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """See the module; None: a section that is left out."""

    scaling: Scaling | None = None
    recovery: Recovery | None = None
    paths: Paths | None = None
    placement: Placement | None = None


def read_case(path: Path) -> Case:
    """Raises FieldError naming field, value and remedy."""
    readers: dict[str, Callable[[object], Any]] = {
        "scaling": _read_scaling, "recovery": _read_recovery, "paths": _read_paths, "placement": _read_placement,
    }  # fmt: skip
    top = fields.mapping("case", fields.read_json(path), frozenset(readers))
    if not top:
        raise FieldError("case", {}, "has no section", remedy=f"give one or more of {', '.join(readers)}")
    return Case(**{name: readers[name](value) for name, value in top.items()})


def _read_scaling(value: object) -> Scaling:
    required = ("x", "r", "q", "R", "Q")
    optional = {"second", "a", "drain_s", "need_error", "rate_error"}
    top = fields.mapping("scaling", value, frozenset({*required, *optional}), required=required)
    x = _count("scaling.x", top["x"], least=0)
    second = _count("scaling.second", top.get("second", x + 1), least=0)
    if second == x:
        raise FieldError("scaling.second", second, "is x", remedy="give another number of instances")
    return Scaling(
        load=Load(
            x=x, r=_positive("scaling.r", top["r"]), R=_amount("scaling.R", top["R"]), Q=_amount("scaling.Q", top["Q"])
        ),
        second=second,
        q=_positive("scaling.q", top["q"]),
        a=_share("scaling.a", top.get("a", 0.5)),
        drain_s=_positive("scaling.drain_s", top.get("drain_s", AgileDartSettings().drain_s)),
        need_error=_amount("scaling.need_error", top.get("need_error", 0.0)),
        rate_error=_amount("scaling.rate_error", top.get("rate_error", 0.0)),
    )


def _read_recovery(value: object) -> Recovery:
    required = ("S", "m", "k", "uplinks", "download", "store_uplink")
    top = fields.mapping("recovery", value, frozenset({*required, "setup_s", "coding", "stripes"}), required=required)
    m, k = _count("recovery.m", top["m"], least=1), _count("recovery.k", top["k"], least=0)
    uplinks = fields.each("recovery.uplinks", top["uplinks"], _positive)
    if len(uplinks) != m + k:
        remedy = f"give the uplink of each of the m + k = {m + k} holders"
        raise FieldError("recovery.uplinks", list(uplinks), f"are {len(uplinks)}", remedy=remedy)
    # A rebuild neither writes checkpoints nor waits for failures: `upload` and `failures` count in no figure here.
    facts = Facts(uplinks=uplinks, download=_positive("recovery.download", top["download"]), upload=MOST, failures=0.0)
    facts = replace(
        facts,
        setup_s=_amount("recovery.setup_s", top.get("setup_s", facts.setup_s)),
        coding=_positive("recovery.coding", top.get("coding", facts.coding)),
        stripes=_count("recovery.stripes", top.get("stripes", facts.stripes), least=1),
    )
    return Recovery(
        size=_positive("recovery.S", top["S"]), m=m, k=k, facts=facts,
        store_uplink=_positive("recovery.store_uplink", top["store_uplink"]),
    )  # fmt: skip


def _read_paths(value: object) -> Paths:
    top = fields.mapping("paths", value, frozenset({"links", "tau", "c", "doubt"}), required=("links", "tau"))
    ends = fields.each("paths.links", top["links"], _link)
    unsorted = dict(ends)
    if len(unsorted) < len(ends):
        repeated = sorted(one for one in unsorted if sum(one == other for other, _ in ends) > 1)
        raise FieldError("paths.links", repeated, "are given twice", remedy="give each link once")
    nodes = {node for link in unsorted for node in link}
    if len(nodes) < 2 or nodes != set(range(len(nodes))):
        remedy = "number the nodes 0 (the source), 1, ... to the sink, none left out, and give links between them"
        raise FieldError("paths.links", sorted(nodes), "are not the numbers of nodes", remedy=remedy)
    links = tuple(sorted(unsorted))
    try:
        network = Network(len(nodes), links)
    except ConfigError:  # all else that it refuses is refused above
        reason, remedy = "leave some node without a path to the last one", "add links, or leave such nodes out"
        raise FieldError("paths.links", list(links), reason, remedy=remedy) from None
    tau, c = _amount("paths.tau", top["tau"]), fields.number("paths.c", top.get("c", KlCost().c))
    if tau < 1:
        raise FieldError("paths.tau", tau, "is before the first slot", remedy="give 1 or more")
    if not 0 < c <= 1:
        raise FieldError("paths.c", c, "is not in (0, 1]", remedy="give one in (0, 1], 0.3 for instance")
    return Paths(
        network=network, records=tuple(unsorted[link] for link in links), tau=tau, kl=KlCost(c),
        thompson=ThompsonCost(_amount("paths.doubt", top.get("doubt", 0.0))),
    )  # fmt: skip


def _link(field: str, value: object) -> tuple[tuple[int, int], Record]:
    names = ("from", "to", "attempts", "delivered")
    top = fields.mapping(field, value, frozenset(names), required=names)
    tail, head = (_count(f"{field}.{name}", top[name], least=0) for name in ("from", "to"))
    if tail == head:
        raise FieldError(f"{field}.to", head, "is where the link begins", remedy="name another node")
    attempts = _amount(f"{field}.attempts", top["attempts"])
    delivered = fields.number(f"{field}.delivered", top["delivered"])
    if not (LEAST <= delivered <= attempts or delivered == attempts == 0):
        reason = f"does not fit {attempts:g} attempts"
        remedy = "give packets, more than 0 and at most the attempts; both are 0 for a link that was not tried"
        raise FieldError(f"{field}.delivered", delivered, reason, remedy=remedy)
    return (tail, head), Record(delivered=delivered, attempts=attempts)


def _read_placement(value: object) -> Placement:
    top = fields.mapping("placement", value, frozenset({"nodes", "zones", "names", "key"}))
    if not top:
        raise FieldError("placement", {}, "is empty", remedy="give nodes, zones, or names and key")
    if ("names" in top) is not ("key" in top):
        missing, given = ("names", "key") if "key" in top else ("key", "names")
        raise FieldError(f"placement.{missing}", None, "is missing", remedy=f"give it beside {given}")
    zones = fields.mapping("placement.zones", top.get("zones", {}))
    names = fields.each("placement.names", top.get("names", []), fields.text)
    if "names" in top and not names:
        raise FieldError("placement.names", [], "are none", remedy="give the names of one or more nodes")
    return Placement(
        nodes=_count("placement.nodes", top["nodes"], least=1) if "nodes" in top else None,
        zones={zone: _count(f"placement.zones.{zone}", count, least=0) for zone, count in zones.items()},
        names=names, key=fields.text("placement.key", top["key"]) if "key" in top else None,
    )  # fmt: skip


def _count(field: str, value: object, *, least: int) -> int:
    found = fields.whole(field, value)
    if not least <= found <= MOST:
        raise FieldError(field, value, "is out of range", remedy=f"give a whole number from {least} to {MOST:g}")
    return found


def _amount(field: str, value: object) -> float:
    found = fields.number(field, value)
    if not (found == 0 or LEAST <= found <= MOST):
        raise FieldError(field, value, "is out of range", remedy=f"give 0, or a number from {LEAST:g} to {MOST:g}")
    return found


def _positive(field: str, value: object) -> float:
    found = _amount(field, value)
    fields.check_number(field, found, positive=True)
    return found


def _share(field: str, value: object) -> float:
    found = fields.number(field, value)
    if not 0 <= found <= 1:
        raise FieldError(field, value, "is no share", remedy="give a number from 0 to 1")
    return found
