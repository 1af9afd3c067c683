"""Random runs of the coordinator against tasks that die, fail and answer late, with the coordinator killed anywhere.

Invariants, after every step
- tables change by RESTORE or by handover only: all that have passed the same ones use the same tables;
- a committed cut is complete;
- what is not told to every task is what markers carry to it: a checkpoint, or a handover's tables;
- epochs only grow and no cut number is used twice;
- a coordinator that was replaced writes nothing more.
At the end, when everything works again: every task runs under the record, no reconfiguration is open, an aborted one
has left the old tables, or those of its last step, and one that is done has brought the new ones.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_twins import FIRST, NODES, SLOTS, TASKS, Cluster, Killed, coordinator, plan, settle
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from leeward.control.errors import LostLeadershipError
from leeward.control.memory import ListSink, ManualClock
from leeward.core.control import ControlRecord, Phase
from leeward.core.orders import Limits, State
from leeward.core.plan import Slot


def of_no_marker(record: ControlRecord) -> ControlRecord:
    """The record without what the markers of checkpoints and handovers bring."""
    return replace(
        record, epoch=0, handover=0, witnesses=(), tables={}, ahead=0, coming={}, checkpoint=0, committed=()
    )


class Migration(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster, self.clock, self.sink = Cluster(), ManualClock(), ListSink()
        self.fuse: int | None = None
        self.coord = None
        self.zombies = []
        self.tables_of = {(0, 0): FIRST}  # by base and handover
        self.last_record = None
        self.cuts_asked: list[int] = []

    # --- the coordinator's life

    @initialize(
        live=st.sampled_from([True, True, False]),
        ahead=st.sampled_from([-1, 8, 10**9]),
        step=st.sampled_from([20, 128]),
    )
    def begin(self, live, ahead, step) -> None:
        self.limits = Limits(live=live, ahead_bytes=ahead, step_groups=step)
        self.start()

    def fault(self, _step: str) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise Killed

    def start(self) -> None:
        self.coord = coordinator(self.cluster, self.clock, self.sink, fault=self.fault, limits=self.limits)
        self.guarded(self.coord.start)

    def guarded(self, deed) -> None:
        before = self.cluster.world.record
        try:
            deed()
        except Killed:
            self.zombies.append(self.coord)
            self.coord = None
        self.watch_record(before)

    def watch_record(self, before) -> None:
        record = self.cluster.world.record
        if record is before or record is None:
            return
        assert before is None or record.epoch >= before.epoch
        if record.phase in (Phase.RUN, Phase.RESTORE):
            known = self.tables_of.setdefault((record.base, record.handover), record.tables)
            assert known == record.tables, f"tables of base {record.base}, handover {record.handover} changed"
        for number in (record.checkpoint, record.cut if record.phase is Phase.PAUSE else 0):
            if number and number not in self.cuts_asked:
                assert number > max(self.cuts_asked, default=0)
                self.cuts_asked.append(number)

    @rule(steps=st.integers(0, 12))
    def kill_soon(self, steps) -> None:
        self.fuse = steps

    @precondition(lambda self: self.coord is None)
    @rule()
    def successor(self) -> None:
        self.fuse = None
        self.start()

    @precondition(lambda self: self.coord is not None)
    @rule()
    def usurper(self) -> None:
        self.zombies.append(self.coord)
        self.fuse = None
        self.start()

    @precondition(lambda self: self.zombies and self.coord is not None)
    @rule()
    def zombie_works(self) -> None:
        zombie, world = self.zombies[-1], self.cluster.world
        before = world.record, world.journal, world.placement
        self.fuse = None
        zombie.tidy()
        try:
            zombie.work()
        except LostLeadershipError:
            self.zombies.pop()
        assert (world.record, world.journal, world.placement) == before

    @precondition(lambda self: self.coord is not None)
    @rule()
    def tidies(self) -> None:
        self.coord.tidy()

    @precondition(lambda self: self.coord is not None)
    @rule(times=st.integers(1, 3))
    def works(self, times) -> None:
        for _ in range(times):
            if self.coord is not None:
                self.guarded(self.coord.work)

    @precondition(lambda self: self.coord is not None and self.coord.machine.state is not State.OFF)
    @rule(
        replicas=st.sets(st.sampled_from([2, 3, 4]), min_size=1),
        node=st.sampled_from(["", "n1", "n3", "n9"]),
        task=st.sampled_from(sorted(TASKS)),
    )
    def wants(self, replicas, node, task) -> None:
        moves = {f"t{task}": Slot(node, 2)} if node else {}
        self.guarded(lambda: self.coord.submit(plan(sorted(replicas), **moves)))

    @precondition(lambda self: self.coord is not None and self.coord.idle)
    @rule(replicas=st.sampled_from([[2, 3], [3, 4], [2, 3, 4]]), steps=st.integers(1, 3))
    def is_in_the_middle_of_steps(self, replicas, steps) -> None:
        """A plan that changes many owners has come so far when whatever follows happens."""
        self.guarded(lambda: self.coord.submit(plan(replicas)))
        for _ in range(30):
            if self.coord is None or self.coord.idle or self.coord.machine.journal.steps >= steps:
                return
            for task in self.cluster.tasks.values():
                task.act()
            self.clock.time += 1.0
            self.guarded(self.coord.work)

    # --- the world

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0, 70.0]))
    def time_passes(self, seconds) -> None:
        self.clock.time += seconds

    @rule(tasks=st.sets(st.sampled_from(sorted(TASKS)), min_size=1))
    def act(self, tasks) -> None:
        for task in sorted(tasks):
            self.cluster.tasks[task].act()

    @rule()
    def all_act(self) -> None:
        for task in self.cluster.tasks.values():
            task.act()

    @rule(rounds=st.integers(1, 20), laggard=st.sampled_from([0, 0, *sorted(TASKS)]))
    def all_goes_on(self, rounds, laggard) -> None:
        for _ in range(rounds):
            if self.coord is not None:
                self.guarded(self.coord.work)
            for task in self.cluster.tasks.values():
                if task.id != laggard:
                    task.act()
            self.cluster.schedule()
            self.clock.time += 1.0

    @rule(task=st.sampled_from(sorted(TASKS)))
    def dies(self, task) -> None:
        self.cluster.tasks[task].die()

    @rule(task=st.sampled_from(sorted(TASKS)))
    def will_fail(self, task) -> None:
        self.cluster.tasks[task].fail_next = "OutOfMemoryError: full"

    @rule(service=st.sampled_from(["redis", "nimbus"]))
    def goes_away(self, service) -> None:
        self.cluster.world.refuse ^= {service}

    @rule()
    def plugin_passes(self) -> None:
        self.cluster.schedule()

    @rule(node=st.sampled_from(["n1", "n2", "n3"]))
    def node_fails_or_comes_back(self, node) -> None:
        if node in self.cluster.nodes and len(self.cluster.nodes) > 1:
            del self.cluster.nodes[node]
            self.cluster.schedule()
        else:
            self.cluster.nodes[node] = NODES[node]

    # --- what must hold

    @invariant()
    def tables_of_those_who_run(self) -> None:
        for task in self.cluster.tasks.values():
            if task.mode == "running":
                assert task.tables == self.tables_of[task.base, task.handover]

    @invariant()
    def markers_carry_what_is_not_told(self) -> None:
        record, told = self.cluster.world.record, self.cluster.world.told
        if record is not None:
            assert of_no_marker(record) == of_no_marker(told)
            assert record.epoch == told.epoch or record.handover == record.epoch
            assert record.ahead in (0, told.ahead)

    @invariant()
    def committed_cuts_are_complete(self) -> None:
        record = self.cluster.world.record
        for cut in record.committed if record else ():
            assert self.cluster.saved.get(cut, {}).keys() == TASKS.keys(), f"cut {cut}"
            assert cut in self.cluster.world.cuts["app-1-1"], f"cut {cut} was deleted"

    def teardown(self) -> None:
        self.fuse = None
        self.cluster.world.refuse.clear()
        self.cluster.nodes = dict(NODES)
        for task in self.cluster.tasks.values():
            task.fail_next = ""
        if self.coord is None:
            self.start()
        settle(self.cluster, self.clock, self.coord, rounds=400)
        newest = max(self.cluster.world.record.committed, default=0)
        for _ in range(3):
            self.clock.time += self.coord.machine.limits.checkpoint_every_s
            settle(self.cluster, self.clock, self.coord)
        record, journal = self.cluster.world.record, self.cluster.world.journal
        assert max(record.committed) > newest, "no fence keeps the tasks in force from writing"
        assert record.phase is Phase.RUN and not journal.open
        assert all(task.tables == record.tables for task in self.cluster.tasks.values())
        assert len(self.cluster.slots) == len(SLOTS)
        if journal.result.startswith("aborted"):
            assert record.tables == journal.undone_tables
        if journal.result == "done":
            assert record.tables == journal.new_tables
        for end in self.sink.of("reconfiguration_ended"):
            assert end["result"].split(":")[0] in ("done", "aborted", "undone", "reset"), end


FAST = settings(max_examples=200, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
TestMigration = Migration.TestCase
TestMigration.settings = FAST


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a failure takes minutes to be made small
def test_many_more():
    run_state_machine_as_test(Migration, settings=settings(FAST, max_examples=5000))
