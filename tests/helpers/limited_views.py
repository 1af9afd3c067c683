"""Random views with pins, nodes that drain and components that are to be apart, as every registered policy reads them.

Nodes e0 to e2 are edges and c0, c1 machines of the cloud. Source `a` -> `b` -> `c` -> `d` -> sink `e`; the source is
pinned to an edge and the sink to the cloud.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

from leeward.control.joint import Joint
from leeward.control.registry import load
from leeward.core.model import ClusterView, Component, Measured, Node
from leeward.core.plan import Plan, Slot
from leeward.core.policy import Policy
from leeward.core.table import even_table, replicas
from leeward.policies.bimodal.mapping.play import PlayedPost, agents_of, gossip_round
from leeward.policies.bimodal.mapping.rules import METHODS
from leeward.policies.bimodal.model.agents_file import read_agents
from tests.helpers.agiledart_views import Beside

EDGES, CLOUDS = ("e0", "e1", "e2"), ("c0", "c1")
NAMES = (*EDGES, *CLOUDS)
WORKERS = ("b", "c", "d")
COMPONENTS = ("a", *WORKERS, "e")


@st.composite
def limited_views(draw: st.DrawFn) -> ClusterView:
    """On Storm as it placed them, or with a plan of ours in force."""
    nodes = tuple(_node(name, draining=draw(st.integers(0, 4)) == 0) for name in NAMES)
    slots = [Slot(node.id, port) for node in nodes for port in node.ports]
    pins = {name: draw(st.sets(st.sampled_from(NAMES))) if draw(st.integers(0, 2)) == 0 else set() for name in WORKERS}
    pins |= {"a": {draw(st.sampled_from(EDGES))}, "e": {draw(st.sampled_from(CLOUDS))}}
    components = tuple(_component(name, number, tuple(sorted(pins[name]))) for number, name in enumerate(COMPONENTS))
    apart = draw(st.lists(st.sets(st.sampled_from(COMPONENTS), min_size=2, max_size=3), max_size=2))
    rate = draw(st.sampled_from((0.0, 10.0, 150.0)))
    return ClusterView(
        topology="app", topology_id=f"app-{draw(st.integers(0, 10**9))}", epoch=1, nodes=nodes, components=components,
        streams=tuple(pairwise(COMPONENTS)),
        tables={one.id: even_table(one.tasks[: draw(st.integers(1, one.max_replicas))]) for one in components},
        assignment={task: draw(st.sampled_from(slots)) for one in components for task in one.tasks},
        measured={name: Measured(arrival_rate=rate, service_rate=120.0, state_bytes=1000) for name in COMPONENTS},
        stream_rate=dict.fromkeys(pairwise(COMPONENTS), rate),
        apart=tuple(tuple(sorted(names)) for names in apart),
        first=draw(st.booleans()),
    )  # fmt: skip


def _node(name: str, *, draining: bool) -> Node:
    edge = {"class": "edge", "battery_mAh": "10000", "base_mA": "100", "recharge_s": "86400"}
    meta = edge if name in EDGES else {"class": "cloud"}
    return Node(id=name, ports=(1, 2, 3, 4), capacity=8, draining=draining, meta=meta)


def _component(name: str, number: int, pinned: tuple[str, ...]) -> Component:
    worker = name in WORKERS
    facts: dict[str, object] = {"event_bytes": 500.0, "selectivity": 1.0, "type": "filter-half"}
    facts |= {"kind": "query" if worker else "source" if name == "a" else "sink", "mbps": 0.1, "rate": 10.0}
    facts |= {"service": WORKERS.index(name), "cpu": 1.0} if worker else {"max_null": 2}
    tasks = (10 * number + 1, 10 * number + 2)[: 2 if worker else 1]
    return Component(
        id=name, tasks=tasks, stateful=name != "a", source=name == "a", max_replicas=len(tasks), pinned=pinned,
        facts=facts,
    )  # fmt: skip


def carried_out(view: ClusterView, plan: Plan, draining: set[str]) -> ClusterView:
    """The view after the plan, with other nodes that drain."""
    nodes = tuple(replace(node, draining=node.id in draining) for node in view.nodes)
    return replace(view, tables=plan.tables, assignment=plan.placement, nodes=nodes, first=False)


def broken(plan: Plan, view: ClusterView) -> list[str]:
    """Pins, drains and pairs of `leeward.apart` that a plan breaks, from their definitions alone."""
    hosts = {name: {plan.placement[task].node for task in replicas(table)} for name, table in plan.tables.items()}
    drains = {node.id for node in view.nodes if node.draining}
    found = [f"{one.id} is pinned" for one in view.components if one.pinned and hosts[one.id] - set(one.pinned)]
    found += [f"{name} on a node that drains" for name, nodes in hosts.items() if nodes & drains]
    pairs = [pair for names in view.apart for pair in combinations(names, 2)]
    return found + [f"{a} and {b} are not apart" for a, b in pairs if hosts[a] & hosts[b]]


@contextmanager
def policy_of(name: str, **settings: Any) -> Iterator[Policy]:
    """A registered policy as the loop sees it, with the agents that it asks, if it asks some."""
    kind = load(name)
    if name == "bimodal":
        with TemporaryDirectory() as folder:
            yield _bimodal(kind, Path(folder), **settings)
        return
    policy = kind(kind.Settings(**settings)) if hasattr(kind, "Settings") else kind(None)
    if name == "agiledart-overlay":
        joint = Joint(policy, _overlay())
        yield joint
        joint.forget("app", gone=True)
        return
    assert not hasattr(policy, "directory"), f"{name} asks peers: make some for it here"
    yield Joint(policy) if hasattr(policy, "decide_all") else policy


@cache
def _overlay() -> Beside:
    """Joined once for all examples, as that takes longest; an example ends its topology."""
    return Beside(NAMES)


def _bimodal(kind: Any, folder: Path, **settings: Any) -> Policy:
    """One agent for each node; all host every service, and each pair has a link."""
    servers = [
        {"id": v, "cpu": 4, "services": [0, 1, 2], "uplink": 0, "address": f"127.0.0.1:{7000 + v}", "node": node}
        for v, node in enumerate(NAMES)
    ]  # fmt: skip
    links = [{"a": a, "b": b, "bandwidth": 9, "cost": 1, "delay": 0} for b in range(5) for a in range(b)]
    document = {"format": "bimodal-agents/1", "direction": "each", "servers": servers, "links": links}
    (agents := folder / "agents.json").write_text(json.dumps(document))
    (secret := folder / "secret").write_text("0123456789abcdef")
    peers, rng = agents_of(read_agents(agents).network, METHODS["survey"]), random.Random(0)
    for _ in range(3):
        gossip_round(peers, now=0.0, rng=rng)
    return Joint(kind(kind.Settings(agents=str(agents), secret=str(secret), **settings)), PlayedPost(peers, rng))
