"""Snapshots read one after the other, by several topologies, are each as if it were the only one."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from leeward.control.snapshot import ClusterSnapshot, Supervisor, read_snapshot
from leeward.core.errors import NotReadyError
from leeward.core.orders import Assigned
from leeward.core.plan import Slot
from tests.helpers.zipped import zipped

IDS = ("a-1", "b-1", "c-1")
NODES, PORTS = st.sampled_from(["n1", "n2", "n3"]), st.integers(1, 3)

executors = st.builds(
    lambda component, first, more, node, port: {
        "component": component, "tasks": [first, first + more], "node": node, "port": port if node else None,
    },
    st.sampled_from(["source", "work"]), st.integers(1, 9), st.integers(0, 2), st.none() | NODES, PORTS,
)  # fmt: skip
topologies = st.builds(
    lambda id, managed, executors: {
        "id": id, "name": id[0], "managed": managed, "epoch": 3 if managed else None, "reason": "no plan",
        "executors": executors,
    },
    st.sampled_from(IDS), st.booleans(), st.lists(executors, max_size=4),
)  # fmt: skip
supervisors = st.builds(
    lambda node, ports, black, meta: {"node": node, "ports": ports, "blacklisted": black, "meta": meta},
    NODES, st.lists(PORTS, max_size=3), st.booleans(), st.none() | st.just({"speedup": 2}),
)  # fmt: skip
documents = st.builds(
    lambda supervisors, topologies: {"version": 1, "supervisors": supervisors, "topologies": topologies},
    st.lists(supervisors, max_size=4), st.lists(topologies, max_size=3, unique_by=lambda one: one["id"]),
)  # fmt: skip


def by_definition(document, topology_id):
    """Straight from the document; None if the topology is not in it."""
    mine = next((one for one in document["topologies"] if one["id"] == topology_id), None)
    if mine is None:
        return None
    others = [one for one in document["topologies"] if one["id"] != topology_id]
    owners = {Slot(e["node"], e["port"]): one["name"] for one in others for e in one["executors"] if e["node"]}
    every = [(task, e) for e in mine["executors"] for task in range(e["tasks"][0], e["tasks"][1] + 1)]
    nodes = sorted({entry["node"] for entry in document["supervisors"]})
    entries = {node: [entry for entry in document["supervisors"] if entry["node"] == node] for node in nodes}
    return ClusterSnapshot(
        supervisors=tuple(
            Supervisor(
                node=node, ports=tuple(sorted({port for entry in entries[node] for port in entry["ports"]})),
                meta={key: str(value) for key, value in (entries[node][-1]["meta"] or {}).items()},
                blacklisted=any(entry["blacklisted"] for entry in entries[node]),
            )
            for node in nodes
        ),
        tasks={task: e["component"] for task, e in every},
        assigned=Assigned(
            managed=mine["managed"], epoch=mine["epoch"], reason=mine["reason"],
            slots={task: Slot(e["node"], e["port"]) for task, e in every if e["node"]},
        ),
        taken=frozenset(owners), owners=owners, others=frozenset(one["id"] for one in others),
    )  # fmt: skip


@given(st.lists(documents, min_size=1, max_size=4), st.data())
def test_each_snapshot_is_read_as_if_it_were_the_only_one(found, data):
    for number, at in enumerate(data.draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=6))):
        document = found[at]
        for topology_id in data.draw(st.permutations(IDS)):
            try:
                text = json.dumps(document)
                seen = read_snapshot(zipped(text) if number % 2 else text, topology_id)
            except NotReadyError:
                seen = None
            assert seen == by_definition(document, topology_id)


def test_supervisors_that_stay_are_the_same_object_for_all_topologies():
    entry = {"name": "a", "managed": False, "epoch": None, "reason": "no plan"}
    two = [{**entry, "id": id, "executors": []} for id in IDS[:2]]
    some = {"version": 1, "supervisors": [{"node": "n1", "ports": [1]}], "topologies": two}
    first = read_snapshot(json.dumps(some), "a-1")
    more = {**some, "topologies": [*two, {**entry, "id": "c-1", "executors": []}]}
    assert read_snapshot(json.dumps(more), "b-1").supervisors is first.supervisors
