"""A leader takes over in the middle, and its clock is behind that of the leader before it: no time is negative."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.cli.history import document
from leeward.control.learning.restarts import restart_of
from leeward.control.report.fold import reconfiguration_of
from leeward.core.journal import Journal, StepName
from leeward.core.orders import Limits
from leeward.core.plan import Slot
from leeward.sim.memory import ListSink, ManualClock
from tests.helpers.control_twins import Cluster, Killed, carry_on, coordinator, plan


def taken_over(behind_s: float):
    """The event of a restart whose first leader dies when Storm is about to place, and the journal that is left."""
    cluster, sink = Cluster(), ListSink()

    def dies(step: str) -> None:
        if step == "rebalance":
            raise Killed(step)

    first_clock = ManualClock(5000.0)
    first = coordinator(cluster, first_clock, sink, fault=dies, limits=Limits(live=False))
    first.start()
    carry_on(cluster, first_clock, first, lambda: cluster.world.record.committed != ())
    first.submit(plan([2], t2=Slot("n3", 2)))
    with pytest.raises(Killed):
        carry_on(cluster, first_clock, first, lambda: False)
    clock = ManualClock(first_clock.time - behind_s)
    second = coordinator(cluster, clock, sink)
    second.start()
    carry_on(cluster, clock, second, lambda: not second.machine.journal.open and second.idle)
    (end,) = sink.of("reconfiguration_ended")
    return end, cluster.world.journal


def test_a_clock_that_is_behind_gives_no_negative_time_and_is_told():
    end, journal = taken_over(behind_s=600.0)
    assert end["result"] == "done" and set(end["phases"]) == {"announce_s", "move_s", "restore_s"}
    assert min(end["phases"].values()) >= 0.0 and end["pause_s"] >= 0.0
    assert end["clock_behind_s"] == pytest.approx(600.0, abs=60.0)
    assert list(journal.times.values()) and restart_of(journal) is None, "nobody knows how long it took"
    entry = reconfiguration_of(end, 5000.0)
    assert set(entry.phases) == {"announce", "move", "restore"} and entry.begun <= 5000.0
    (line,) = document("app", (entry,), whole=False)["reconfigurations"]
    assert "behind the clock of the leader before it" in line["reason"]


def test_clocks_that_agree_need_no_note():
    end, _ = taken_over(behind_s=0.0)
    assert end["clock_behind_s"] == 0.0
    (line,) = document("app", (reconfiguration_of(end, 5000.0),), whole=False)["reconfigurations"]
    assert "behind" not in line["reason"]


@given(st.lists(st.tuples(st.sampled_from(list(StepName)), st.floats(0, 1e9)), max_size=12))
def test_the_times_of_a_journal_never_go_back(steps: list[tuple[StepName, float]]):
    journal, last = Journal(), 0.0
    for step, now in steps:
        new = step not in journal.times
        journal = journal.at(step, now)
        if new:
            assert journal.times[step] == max(now, last)
        last = max(journal.times.values())
