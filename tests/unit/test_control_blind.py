"""No plan goes by figures that are missing, late or of another time: Redis away, a task that tells nothing, clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.control.lateness import LATE_S, Lateness, told
from leeward.control.monitor import Monitor
from leeward.control.observe import observe
from leeward.core.errors import NotReadyError
from leeward.core.metrics import TaskMetrics
from leeward.core.outcome import Ending
from leeward.core.plan import Slot
from leeward.core.settings import Settings
from leeward.sim.memory import MemoryClusterStore, MemoryRequests
from tests.helpers.control_figures import RATE, Figures
from tests.helpers.control_stage import Script, keep, replicas_of_work, stage
from tests.helpers.control_twins import ID, NAME, TASKS, Cluster


def led(policy, happens, seconds, **settings):
    """The service leads for so long, while `happens(seconds since the beginning, cluster, figures)` is called."""
    cluster = Cluster()
    figures = cluster.world.metrics[ID] = Figures(cluster)

    def until(sink, cluster):
        passed = cluster.clock.time - 1000.0
        happens(passed, cluster, figures)
        return passed > seconds

    chosen = Settings(**{"period_s": 0.5, "cool_down_s": 0.0, "window_s": 3.0} | settings)
    service, clock, sink, cluster = stage(policy, until=until, cluster=cluster, settings=chosen, limit=40_000)
    service.run(clock.stop)
    return sink, cluster


def rates_seen(policy):
    return [view.measured["source"].arrival_rate for view in policy.views]


def test_with_redis_away_no_plan_is_made_and_afterwards_the_rates_begin_anew():
    """Plans were made from the last rates, begun and aborted; then one was made from a mean over the outage."""
    policy, asked = Script(keep), []

    def happens(passed, cluster, figures):
        away = 10.0 < passed < 70.0
        (cluster.world.refuse.add if away else cluster.world.refuse.discard)("redis")
        figures.flows = not away  # the source reads from it
        asked.append((passed, len(policy.views)))

    led(policy, happens, 90.0)
    before, after = (max(n for at, n in asked if at < limit) for limit in (11.0, 70.0))
    assert before == after and 0 < before < len(policy.views), "asked before and behind, not while it was away"
    assert rates_seen(policy) == pytest.approx([RATE] * len(policy.views), rel=0.05)


def test_a_plan_that_was_being_made_when_redis_went_away_is_refused(monkeypatch):
    wants = Script(replicas_of_work([2, 3]))
    decide = wants.decide

    def slowly(view, *, now, rng):  # in line: the outage begins while it thinks
        world.refuse.add("redis")
        return decide(view, now=now, rng=rng)

    wants.decide = slowly
    cluster = Cluster()
    world = cluster.world
    cluster.world.metrics[ID] = Figures(cluster)
    settings = Settings(period_s=1.0, cool_down_s=0.0, window_s=3.0)
    # a look at Redis comes before its answer is taken, as it does where a policy thinks for a second
    monkeypatch.setattr("leeward.control.term.MEASURE_S", 0.0)
    service, clock, sink, _ = stage(
        wants, until=lambda sink, _: bool(sink.of("plan_refused")), cluster=cluster, settings=settings
    )
    service.run(clock.stop)
    assert sink.of("plan_refused")[0]["why"].startswith("no measurements: redis does not answer")
    assert not sink.of("reconfiguration_started")


def test_after_an_absurd_line_no_plan_sees_a_rate_of_0():
    """The rates were forgotten with it, and the next plan saw none: fewer replicas for a load that was there."""
    policy = Script(keep)

    def happens(passed, cluster, figures):
        figures.instead = {2: '{"component": "work", "pid": 2, "t": NaN}'} if 10.0 < passed < 11.5 else {}

    sink, _ = led(policy, happens, 20.0)
    assert sink.of("measure_failed") and len(policy.views) > 5
    assert rates_seen(policy) == pytest.approx([RATE] * len(policy.views), rel=0.05)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ({"times": 0}, "sent s fell from"),
        ({"instead": {4: "absurd"}}, "task 4 tells figures"),
        ({"silent": {2}}, "task 2 of work tells nothing since 10 s"),
        ({"ahead": {2: 60.0}}, r"the clock of task 2 of work stepped by \+60 s"),
    ],
)
def test_a_dry_run_by_absurd_or_late_lines_is_refused_and_a_plan_by_hand_is_not(harm, why):
    """`leeward plan` and `explain` answered by rates of 0, and said nothing of it."""
    cluster = Cluster()
    figures = cluster.world.metrics[ID] = Figures(cluster)
    service, clock, _, _ = stage(Script(keep), until=lambda sink, _: sink.of("plan_made"), cluster=cluster)
    service.run(clock.stop)

    def sleep(seconds):
        clock.time += seconds
        vars(figures).update(harm)

    settings = Settings(window_s=10.0)
    with pytest.raises(NotReadyError, match=why):
        observe(NAME, service._ports, settings, sleep=sleep)
    assert observe(NAME, service._ports, settings, sleep=sleep, checked=False).components


def test_a_dry_run_does_not_wait_for_warm_tasks():
    cluster = Cluster()
    figures = cluster.world.metrics[ID] = Figures(cluster)
    done = "reconfiguration_ended"
    service, clock, _, _ = stage(Script(replicas_of_work([2])), until=lambda sink, _: sink.of(done), cluster=cluster)
    service.run(clock.stop)

    def sleep(seconds):
        clock.time += seconds
        figures.silent = {3, 4}

    settings = Settings(window_s=10.0)
    assert set(cluster.world.record.tables["work"]) == {2}
    assert observe(NAME, service._ports, settings, sleep=sleep).measured["source"].arrival_rate == pytest.approx(RATE)


def test_right_after_a_reconfiguration_no_plan_sees_a_rate_of_0():
    policy = Script(keep, keep, keep, replicas_of_work([2, 3]), keep)
    led(policy, lambda *_: None, 20.0)
    assert len(policy.views) > 8
    assert rates_seen(policy) == pytest.approx([RATE] * len(policy.views), rel=0.05)


def test_a_task_that_tells_nothing_stops_planning_and_is_named():
    """Its share of the rate was left out: half the load of two replicas, and half of them were enough."""
    policy, views = Script(keep), []

    def happens(passed, cluster, figures):
        figures.silent = {2} if 10.0 < passed < 30.0 else set()
        views.append((passed, len(policy.views)))

    sink, _ = led(policy, happens, 45.0)
    assert [view.measured["work"].arrival_rate for view in policy.views] == pytest.approx(
        [3 * RATE] * len(policy.views), rel=0.05
    )
    quiet = {n for at, n in views if 16.0 < at < 30.0}
    assert len(quiet) == 1 and max(quiet) < len(policy.views)
    whys = [fields["why"] for fields in sink.of("measure_failed")]
    assert whys and all(why.startswith("task 2 of work tells nothing since") for why in whys)


def test_a_warm_task_that_tells_nothing_stops_nobody():
    policy = Script(keep)

    def happens(passed, cluster, figures):
        figures.silent = {3, 4} if passed > 5.0 else set()

    sink, _ = led(policy, happens, 20.0)
    assert not sink.of("measure_failed") and len(policy.views) > 20


def test_lines_that_are_gone_stop_planning():
    """As after a restart of Redis without its data."""
    policy, views = Script(keep), []

    def happens(passed, cluster, figures):
        if 10.0 < passed < 20.0:
            figures.silent = set(TASKS)
            figures.clear()
        else:
            figures.silent = set()
        views.append((passed, len(policy.views)))

    sink, _ = led(policy, happens, 30.0)
    assert rates_seen(policy) == pytest.approx([RATE] * len(policy.views), rel=0.05)
    assert len({n for at, n in views if 11.5 < at < 20.0}) == 1 and sink.of("measure_failed")


@pytest.mark.parametrize("stays", [False, True])
def test_a_count_that_jumps_tenfold_changes_no_rate(stays):
    """A plan that was asked for in that second went by a rate of thousands; the next look only told that it fell."""
    policy = Script(keep)

    def happens(passed, cluster, figures):
        figures.times = 10 if passed > 20.0 and (stays or passed < 21.2) else 1

    sink, _ = led(policy, happens, 40.0)
    assert max(rates_seen(policy)) <= RATE * (10 if stays else 1) * 1.01, "ten counters of ten are ten times the load"
    whys = {fields["why"].partition(" from ")[0] for fields in sink.of("measure_failed")}
    fell = set() if stays else {"task 1 of source: sent s fell"}
    assert whys == {"task 1 of source: sent jumped"} | fell


# --- the plugin's snapshot


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 9}', '{"version": 1, "supervisors": 3, "topologies": {}}'])
def test_while_the_snapshot_cannot_be_read_no_plan_is_made_and_the_service_stays(text, monkeypatch):
    """It ended with ProtocolError, and so did its standby."""
    policy, asked, now = Script(keep), [], [0.0]
    good = MemoryClusterStore.snapshot

    def read(self, wake):
        return text if 10.0 < now[-1] < 30.0 else good(self, wake)

    def happens(passed, cluster, figures):
        if now[-1] <= 15.0 < passed:
            MemoryRequests(cluster.world).ask({"replicas": {"work": {"n1": 2}}})
        now.append(passed)
        asked.append((passed, len(policy.views)))

    monkeypatch.setattr(MemoryClusterStore, "snapshot", read)
    sink, cluster = led(policy, happens, 45.0)
    before, after = (max(n for at, n in asked if at < limit) for limit in (11.5, 30.0))
    assert 0 < before == after < len(policy.views)
    whys = {fields["why"] for fields in sink.of("measure_failed")}
    assert len(whys) == 1 and whys.pop().startswith("the plugin's snapshot cannot be read: ")
    (answer,) = cluster.world.answers.values()
    assert "cannot be read" in answer.why and not sink.of("reconfiguration_started")


# --- Nimbus


@pytest.mark.parametrize("moves", [True, False])
def test_while_nimbus_is_away_no_plan_begins_that_needs_it(moves):
    """The stream was stopped for the placement, and Storm placed nothing before the plan was undone."""
    passed = [0.0]

    def happens(seconds, cluster, figures):
        passed.append(seconds)
        if seconds > 1.0:
            cluster.world.refuse.add("nimbus")

    def wanted(view):
        if passed[-1] < 12.0:
            return keep(view)
        plan = replicas_of_work([2, 3])(view)
        return replace(plan, placement={**view.assignment, 2: Slot("n3", 2)}) if moves else plan

    sink, _ = led(Script(wanted), happens, 16.0)
    (away,) = sink.of("server_away")
    assert away["server"] == "Nimbus" and "nimbus does not answer" in away["why"]
    assert bool(sink.of("reconfiguration_started")) is not moves
    if moves:
        why = "it moves executors, and nimbus does not answer"
        assert all(fields["why"].startswith(why) for fields in sink.of("plan_refused")) and sink.of("plan_refused")


@pytest.mark.parametrize("node", ["n2", "n3"])
def test_while_nimbus_is_away_a_plan_by_hand_is_refused_if_it_needs_it(node):
    """On n2 there is a warm task, to n3 an executor has to move."""
    asked = []

    def happens(seconds, cluster, figures):
        if seconds > 1.0:
            cluster.world.refuse.add("nimbus")
        if seconds > 12.0 and not asked:
            asked.append(MemoryRequests(cluster.world).ask({"replicas": {"work": {node: 1}}}))

    sink, cluster = led(Script(keep), happens, 20.0)
    answer = cluster.world.answers[asked[0]]
    assert bool(sink.of("reconfiguration_started")) is (node == "n2")
    if node == "n3":
        assert answer.why.startswith("it moves executors, and nimbus does not answer") and "Ask again" in answer.why


def test_a_plan_that_is_approved_while_nimbus_is_away_waits_for_approval_still():
    asked = []

    def happens(seconds, cluster, figures):
        away = 10.0 < seconds < 30.0
        (cluster.world.refuse.add if away else cluster.world.refuse.discard)("nimbus")
        if len(asked) < (seconds > 20.0) + (seconds > 45.0):
            asked.append(MemoryRequests(cluster.world).ask({"approve": 1}))

    def wanted(view):
        plan = replicas_of_work([2, 3])(view)
        return replace(plan, placement={**view.assignment, 2: Slot("n3", 2)})

    sink, cluster = led(Script(wanted), happens, 60.0, approval=True)
    first, second = (cluster.world.answers[name] for name in asked)
    assert first.why.startswith("it moves executors, and nimbus does not answer")
    assert second.ending is Ending.DONE and not sink.of("proposal_expired")


def test_nimbus_is_told_to_be_back():
    def happens(seconds, cluster, figures):
        (cluster.world.refuse.add if 2.0 < seconds < 12.0 else cluster.world.refuse.discard)("nimbus")

    sink, _ = led(Script(keep), happens, 20.0)
    told = [(action, fields["server"]) for action, fields in sink.events if action.startswith("server_")]
    assert told == [("server_away", "Nimbus"), ("server_back", "Nimbus")]


# --- clocks


def line(t, *, pid=1, sent=0):
    return TaskMetrics(component="source", pid=pid, t=t, sent={"s": sent})


@pytest.mark.parametrize("off_s", [-60.0, 60.0])
def test_a_clock_that_is_off_makes_nobody_late_and_no_rate_wrong(off_s):
    monitor, lateness = Monitor(Settings(window_s=10.0)), Lateness()
    for second in range(30):
        samples = {1: line(second, sent=100 * second), 2: line(second + off_s, sent=50 * second)}
        rates = monitor.observe(samples, float(second))
        lateness.observe(samples, float(second))
        assert lateness.late([1, 2], float(second)) == {}
    assert rates.emitted["source"] == pytest.approx(150.0)


@pytest.mark.parametrize("off_s", [-60.0, 60.0])
def test_a_process_on_a_node_with_another_clock_is_not_compared_with_the_one_before(off_s):
    """65 s seemed to have passed in 5: a tenth of the rate. Or -55 s: none at all, for a whole window."""
    monitor = Monitor(Settings(window_s=10.0))
    for second in range(20):
        monitor.observe({1: line(float(second), sent=100 * second)}, float(second))
    monitor.observe({1: line(20 + off_s, pid=2, sent=3)}, 20.0)
    assert monitor.unknown([1]) == [1]
    rates = monitor.observe({1: line(21 + off_s, pid=2, sent=103)}, 21.0)
    assert monitor.unknown([1]) == [] and rates.emitted["source"] == pytest.approx(100.0)


@pytest.mark.parametrize("step_s", [-60.0, 60.0, 1e6])
def test_a_clock_that_steps_while_its_task_runs_makes_no_rate_wrong_and_is_told(step_s):
    """100 tuples/s were 14 for a window, as 70 s seemed to have passed in 10."""
    policy = Script(keep)

    def happens(passed, cluster, figures):
        figures.ahead = {1: step_s} if passed > 10.0 else {}

    sink, _ = led(policy, happens, 25.0)
    assert rates_seen(policy) == pytest.approx([RATE] * len(policy.views), rel=0.05) and len(policy.views) > 15
    (why,) = {fields["why"] for fields in sink.of("measure_failed")}
    assert why.startswith("the clock of task 1 of source stepped by ")


def test_a_step_is_told_once_and_a_line_that_was_late_is_none():
    lateness = Lateness()
    lateness.observe({1: line(100.0), 2: line(100.0)}, 0.0)
    assert lateness.stepped({1: line(161.0), 2: line(101.0)}, 1.0) == {1: 60.0}
    lateness.observe({1: line(161.0), 2: line(101.0)}, 1.0)
    assert lateness.stepped({1: line(162.0), 2: line(130.0)}, 30.0) == {}, "it told nothing for 29 s, and goes on"
    assert lateness.stepped({1: line(100.0), 2: line(1e9, pid=2)}, 2.0) == {1: -62.0}, "2 is another process"


def test_lateness_counts_from_the_last_new_line_by_the_services_clock():
    lateness = Lateness()
    assert lateness.late([1, 2], 50.0) == {}, "nobody has told anything yet"
    lateness.observe({1: line(5000.0)}, 100.0)
    lateness.observe({1: line(5000.0)}, 101.0)
    assert lateness.late([1, 2], 100.0 + LATE_S) == {}
    assert lateness.late([2, 1], 106.0) == {1: 6.0, 2: 6.0}
    lateness.observe({1: line(5001.0)}, 106.0)
    assert told(lateness.late([1, 2], 107.0), {2: "work"}) == "task 2 of work tells nothing since 7 s"
    lateness.forget()
    assert lateness.late([1, 2], 200.0) == {}
