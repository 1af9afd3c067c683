"""Components that share no node: seats against exhaustive search, and what stays."""

from __future__ import annotations

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from leeward.core.apart import barred, one_each, rivals_of, settle

NAMES, NODES = "abcd", ("n1", "n2", "n3")
LISTS = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), max_size=3)
ALLOWED = st.fixed_dictionaries({name: st.lists(st.sampled_from(NODES), unique=True) for name in NAMES})
ROOM = st.fixed_dictionaries({node: st.integers(1, 2) for node in NODES})
HOSTS = st.fixed_dictionaries({name: st.dictionaries(st.sampled_from(NODES), st.integers(1, 2)) for name in NAMES})


def are_apart(apart, hosts):
    return all(
        not {n for n, c in hosts.get(a, {}).items() if c} & {n for n, c in hosts.get(b, {}).items() if c}
        for names in apart for a in names for b in names if a != b
    )  # fmt: skip


@given(apart=LISTS, allowed=ALLOWED, room=ROOM)
def test_seats_are_found_if_there_are_any(apart, allowed, room):
    def right(seats):
        placed = {name: {node: 1} for name, node in seats.items()}
        fits = all(count <= room[node] for node, count in Counter(seats.values()).items())
        return fits and are_apart(apart, placed) and all(node in allowed[name] for name, node in seats.items())

    any_at_all = any(right(dict(zip(NAMES, seats, strict=True))) for seats in product(NODES, repeat=len(NAMES)))
    seats = one_each(NAMES, allowed, room, rivals_of(apart), {})
    assert (seats is not None) == any_at_all
    assert seats is None or (seats.keys() == set(NAMES) and right(seats))


@given(apart=LISTS, hosts=HOSTS, allowed=ALLOWED)
def test_what_is_settled_is_apart_and_has_a_replica_each(apart, hosts, allowed):
    room = dict.fromkeys(NODES, 20)
    settled = settle(apart, hosts, allowed, room)
    if settled is None:
        assert one_each(sorted(rivals_of(apart)), allowed, room, rivals_of(apart), {}) is None
        return
    assert are_apart(apart, settled)
    assert all(any(settled[name].values()) for name in rivals_of(apart))
    if are_apart(apart, hosts) and all(any(hosts[name].values()) for name in rivals_of(apart)):
        assert settled == hosts, "replicas that are apart stay where they are"


def test_nodes_of_rivals_are_barred():
    rivals = rivals_of([("a", "b"), ("a", "c"), ("d",)])
    hosts = {"b": {"n1": 1, "n2": 0}, "c": {"n3": 2}, "d": {"n2": 1}}
    assert barred("a", rivals, hosts) == {"n1", "n3"}
    assert barred("d", rivals, hosts) == frozenset() and "d" not in rivals
