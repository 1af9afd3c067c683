"""Replicas on many nodes: the heap and the shares that are computed once give what the definitions say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from leeward.core.model import Component, Measured
from leeward.core.table import even_table
from leeward.policies.agiledart.scaling.facts import Shares, busy
from leeward.policies.agiledart.scaling.spread import Room, grow
from tests.helpers.control_views import node, view

NODES = [f"n{number}" for number in range(7)]
counts = st.dictionaries(st.sampled_from(NODES), st.integers(0, 4))


def by_definition(counts, by, allowed, room, *, ready, out, near):
    """Each replica on the node that is best at that moment."""
    found, here = dict(counts), {node for node, count in counts.items() if count > 0}
    for _ in range(by):
        free = [n for n in allowed if room.free(n) > 0]
        best = min(
            free, default=None,
            key=lambda n: (found.get(n, 0) >= ready.get(n, 0), (n in here) == out, n not in near, room.load(n), n),
        )  # fmt: skip
        if best is None:
            break
        found[best] = found.get(best, 0) + 1
        room.used[best] += 1
        if out:
            here.add(best)
    return found


@given(
    counts, st.integers(0, 12), st.lists(st.sampled_from(NODES), unique=True), counts, counts, st.booleans(),
    st.lists(st.sampled_from(NODES)),
)  # fmt: skip
def test_each_replica_goes_to_the_node_that_is_best_then(here, by, allowed, used, ready, out, near):
    nodes = [node(name, capacity=number % 4 + 1) for number, name in enumerate(NODES)]
    rooms = [Room.of(nodes), Room.of(nodes)]
    for room in rooms:
        room.used.update(used)
    options = {"ready": ready, "out": out, "near": near}
    assert grow(here, by, allowed, rooms[0], **options) == by_definition(here, by, allowed, rooms[1], **options)
    assert +rooms[0].used == +rooms[1].used


def behind(streams, name):
    """The component, and all that its tuples come to."""
    found = {name}
    while more := {target for source, target in streams if source in found} - found:
        found |= more
    return found


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9),
    st.lists(st.none() | st.floats(1, 100), min_size=6, max_size=6),
)  # fmt: skip
def test_the_busiest_behind_a_component_is_that_of_all_that_its_tuples_come_to(pairs, rates):
    names = [f"c{number}" for number in range(6)]
    base = view()
    shown = replace(
        base, streams=tuple((names[a], names[b]) for a, b in pairs if a != b),
        components=tuple(Component(id=name, tasks=(1,), stateful=False, max_replicas=1) for name in names),
        tables=dict.fromkeys(names, even_table([1])),
        measured={n: Measured(arrival_rate=50.0, service_rate=mu) for n, mu in zip(names, rates, strict=True)},
    )  # fmt: skip
    shares = Shares(shown)
    for name in names:
        known = [busy(shown, one) for one in behind(shown.streams, name)]
        assert shares.busiest(name) == (None if None in known else max(known))
    assert shares.busy == {name: busy(shown, name) for name in names}
