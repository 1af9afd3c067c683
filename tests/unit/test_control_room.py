"""A full cluster is called full, with the names of those that hold its slots."""

from __future__ import annotations

from leeward.control.room import RESERVED, no_room, not_placed
from leeward.control.snapshot import ClusterSnapshot, Supervisor
from leeward.core.orders import Assigned
from leeward.core.plan import Slot

TWO = (Supervisor(node="n1", ports=(1, 2)), Supervisor(node="n2", ports=(1,)))
OWNERS = {Slot("n1", 1): "big-app", Slot("n1", 2): "other", Slot("n2", 1): "big-app"}


def cluster(supervisors=TWO, owners=OWNERS, slots=None, reserved=()):
    assigned = Assigned(managed=False, epoch=None, reason="no plan", slots=slots or {})
    taken = frozenset({*owners, *reserved})
    return ClusterSnapshot(supervisors=supervisors, tasks={}, assigned=assigned, taken=taken, owners=owners)


def test_a_full_cluster_names_those_that_hold_it():
    assert no_room(cluster()) == "no free slot: 3 of 3 are taken by big-app (2), other (1)"
    assert no_room(cluster(), "n2") == "no free slot: 1 of 1 are taken by big-app (1)"


def test_a_slot_that_is_reserved_is_taken():
    owners = {slot: name for slot, name in OWNERS.items() if slot.node == "n1"}
    assert no_room(cluster(owners=owners)) == ""
    full = cluster(owners=owners, reserved={Slot("n2", 1)})
    assert no_room(full) == f"no free slot: 3 of 3 are taken by {RESERVED} (1), big-app (1), other (1)"


def test_no_supervisor_is_no_slot():
    assert no_room(cluster(supervisors=())) == "no slot: no supervisor runs"
    assert no_room(cluster(), "n9") == "", "an unknown node is refused elsewhere"


def test_not_placed_says_how_many_wait_where_there_is_room():
    assert not_placed(cluster(), frozenset({1, 2})).startswith("no free slot: 3 of 3")
    roomy = cluster(owners={}, slots={1: Slot("n1", 1)})
    assert not_placed(roomy, frozenset({1, 2})) == "1 of 2 tasks are not placed yet"
    assert not_placed(roomy, frozenset({1})) == ""
