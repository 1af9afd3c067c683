"""A whole service on in-memory ports: a policy that says what it is told, and a clock that moves the world."""

from __future__ import annotations

import threading

from leeward.control.loop import Inline
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.service import Service
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings
from leeward.core.table import even_table
from leeward.sim.memory import ListSink, ManualClock, memory_ports
from tests.helpers.control_twins import ID, NAME, Cluster

STRUCTURE = Structure(
    id=ID,
    name=NAME,
    components=(
        ComponentFacts(id="sink", kind="stateful", inputs=("work",)),
        ComponentFacts(id="source", kind="source", inputs=()),
        ComponentFacts(id="work", kind="stateful", inputs=("source",)),
    ),
)


class Script:
    """A policy that says what it is told: callables of the view, the last one for ever."""

    def __init__(self, *answers):
        self.answers, self.views = list(answers), []

    def decide(self, view, *, now, rng):
        self.views.append(view)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(view)


def keep(view):
    return Plan(tables=view.tables, placement=view.assignment)


def replicas_of_work(tasks, **estimate):
    def answer(view):
        tables = {**view.tables, "work": even_table(tasks)}
        return Plan(tables=tables, placement=view.assignment, reason="script", estimate=Estimate(**estimate))

    return answer


class Stage(ManualClock):
    """The world moves when somebody looks at the clock: tasks act, the plugin places; at the end the service stops."""

    def __init__(self, cluster, *, until, limit=4000):
        super().__init__()
        self.cluster, self.until, self.limit, self.stop = cluster, until, limit, threading.Event()
        self.inside = False

    def now(self):
        self.limit -= 1
        if not self.inside:
            self.inside = True
            wanted = self.cluster.world.placement
            if wanted is not None and dict(wanted.slots) != self.cluster.slots:
                self.cluster.schedule()
            self.cluster.all_act()
            self.cluster.beat()
            self.inside = False
        if self.until() or self.limit < 0:
            self.stop.set()
        return self.time


def stage(policy, *, until, cluster=None, settings=None, fault=None, limit=4000):
    cluster = cluster or Cluster()
    cluster.world.structures[NAME] = STRUCTURE
    sink = ListSink()
    clock = Stage(cluster, until=lambda: until(sink, cluster), limit=limit)
    cluster.clock, cluster.sink = clock, sink
    ports = memory_ports(cluster.world, clock=clock, sink=sink, place=cluster.rebalanced)
    settings = settings or Settings(
        period_s=0.5, cool_down_s=2.0, scale_down_s=0.0, no_return_s=0.0, window_s=1.0, minimum_gain=0.02
    )
    service = Service(topology=NAME, ports=ports, settings=settings, policy=policy, fault=fault, executor=Inline())
    return service, clock, sink, cluster


def ended(count):
    return lambda sink, _: len(sink.of("reconfiguration_ended")) >= count
