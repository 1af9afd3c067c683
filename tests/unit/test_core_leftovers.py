"""Which leftovers of topologies may be deleted, and which swap areas of a node."""

from __future__ import annotations

import pytest

from leeward.control.ports import Structure
from leeward.control.tidying import survey
from leeward.core.errors import ClusterRefusedError
from leeward.core.leftovers import YOUNG_S, Leftover, reason_to_stay, submitted_at
from leeward.runtime.state.swap import drop_gone
from leeward.sim.memory import MemoryLeftovers, MemoryNimbus, World

NOW = 1_700_000_000.0
OLD, YOUNG = "app-3-1600000000", f"app-4-{int(NOW - YOUNG_S / 2)}"
THERE = Leftover(znodes=4, keys=2)


@pytest.mark.parametrize(
    ("topology_id", "at"),
    [("app-1-1600000000", 1.6e9), ("my-app-2-12-5", 5.0), ("app", None), ("app-x-5", None), ("-1-5", None)],
)
def test_an_id_says_when_it_was_submitted(topology_id, at):
    assert submitted_at(topology_id) == at


@pytest.mark.parametrize(
    ("topology_id", "left", "running", "why"),
    [
        (OLD, THERE, (), ""),
        (OLD, Leftover(placement="app"), (), ""),
        (OLD, Leftover(swaps=("/swap",)), (), ""),
        (OLD, THERE, (OLD,), "runs"),
        (OLD, THERE + Leftover(listed=True), (), "runs"),
        (OLD, THERE, ("app-5-1600000009",), ""),
        (YOUNG, THERE, (), "submitted less than 60 s ago"),
        (f"app-9-{int(NOW) + 500}", THERE, (), "submitted less than 60 s ago"),  # Nimbus' clock is ahead
        ("settings", THERE, (), "not an id of Storm's"),
        (OLD, Leftover(keys=2), (), "unknown to this ZooKeeper: another cluster may use this Redis"),
    ],
)
def test_what_stays_says_why(topology_id, left, running, why):
    assert reason_to_stay(topology_id, left, running=running, now=NOW) == why


def test_orphans_go_where_redis_is_of_this_cluster_alone():
    assert reason_to_stay(OLD, Leftover(keys=2), running=(), now=NOW, orphans=True) == ""
    assert reason_to_stay(OLD, Leftover(keys=2), running=(OLD,), now=NOW, orphans=True) == "runs"


def test_a_topology_that_is_submitted_while_leftovers_are_looked_for_runs():
    world = World(cuts={OLD: {1}})

    class Submitting(MemoryLeftovers):
        def found(self):
            world.structures["app"] = Structure(id=OLD, name="app", components=())
            return super().found()

    (found,) = survey(MemoryNimbus(world), Submitting(world), NOW, orphans=True).values()
    assert found.why == "runs"


def test_a_topology_that_ended_while_leftovers_were_looked_for_is_left_for_the_next_time():
    world = World(cuts={OLD: {1}}, structures={"app": Structure(id=OLD, name="app", components=())})

    class Killing(MemoryLeftovers):
        def found(self):
            world.structures.clear()
            return super().found()

    assert survey(MemoryNimbus(world), Killing(world), NOW, orphans=True)[OLD].why == "runs"


def test_where_nimbus_does_not_answer_nothing_may_go():
    world = World(cuts={OLD: {1}}, refuse={"nimbus"})
    with pytest.raises(ClusterRefusedError):
        survey(MemoryNimbus(world), MemoryLeftovers(world), NOW)


@pytest.fixture
def area(tmp_path):
    for name in ("mine-1-1600000000", OLD, "other-2-1600000000", YOUNG, "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cut-1-count-4.swap").write_bytes(b"state")
    return tmp_path


def test_a_task_deletes_swap_areas_of_topologies_that_storm_no_longer_knows(area):
    known = {"mine-1-1600000000", "other-2-1600000000"}
    assert drop_gone(area, "mine-1-1600000000", known.__contains__, NOW) == [OLD]
    assert sorted(path.name for path in area.iterdir()) == sorted([*known, YOUNG, "notes"])


def test_a_task_that_does_not_find_its_own_topology_deletes_nothing(area):
    """It looked at another place than Storm's."""
    assert drop_gone(area, "mine-1-1600000000", lambda _: False, NOW) == []
    assert len(list(area.iterdir())) == 5


def test_a_node_without_a_swap_area_asks_nobody(tmp_path):
    assert drop_gone(tmp_path / "none", "mine-1-1", lambda _: 1 / 0, NOW) == []
