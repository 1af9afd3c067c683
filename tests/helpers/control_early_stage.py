"""A topology that Storm has not placed yet, and a Nimbus that makes its passes."""

from __future__ import annotations

import json
import threading

from leeward.control.loop import Inline
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.service import Service
from leeward.core.plan import Slot
from leeward.core.settings import Settings
from leeward.sim.memory import ListSink, ManualClock, World, memory_ports, snapshot_text

NODES = {"n1": (1, 2), "n2": (1, 2)}
CONF = {"topology.acker.executors": 0, "topology.eventlogger.executors": 0}


def component(name: str, tasks: object, *inputs: str, kind: str = "stateful") -> ComponentFacts:
    return ComponentFacts(id=name, kind=kind, inputs=inputs, conf={"topology.tasks": tasks})


STRUCTURE = Structure(
    id="new-1-1",
    name="new",
    components=(component("from", 1, kind="source"), component("to", 2, "from")),
    conf=CONF,
)
TASKS = {1: "from", 2: "to", 3: "to"}


def published(topology_id: str = "", **facts: object) -> str:
    """The plugin's snapshot, with no topology unless one is named."""
    about = {"tasks": TASKS, "slots": {}} | facts
    text = snapshot_text(nodes=NODES, topology_id=topology_id, name="new", **about)  # type: ignore[arg-type]
    return text if topology_id else json.dumps(json.loads(text) | {"topologies": []})


class Passes(ManualClock):
    """Nimbus makes its pass at the n-th look at the clock: it follows a placement if there is one.

    `begun`: it began before that, when there was none.
    """

    def __init__(self, world: World, after: int, tasks: dict[int, str], begun: bool = False, until: int = 40) -> None:
        super().__init__()
        self.world, self.left, self.tasks, self.until, self.stop = world, after, tasks, until, threading.Event()
        self.begun = begun

    def now(self) -> float:
        self.left, self.until = self.left - 1, self.until - 1
        if self.left == 0:
            self.make()
        if self.until == 0:
            self.stop.set()
        self.time += 0.01
        return self.time

    def make(self) -> None:
        wanted = None if self.begun else self.world.placement
        slots = dict(wanted.slots) if wanted else dict.fromkeys(self.tasks, Slot("n1", 1))
        self.world.snapshot = published(
            STRUCTURE.id, tasks=self.tasks, slots=slots, managed=wanted is not None, epoch=0, reason="no plan"
        )
        self.world.beats[STRUCTURE.id] = dict.fromkeys(self.tasks, "1")
        self.world.changed()


def serve(
    policy, *, after: int = 20, tasks: dict[int, str] = TASKS, reservations=None, begun: bool = False,
    waiting: bool = False,
):  # fmt: skip
    """`waiting`: Nimbus has made passes before, and the plugin waits for the first plan until the n-th look."""
    world = World(
        structures={"new": STRUCTURE}, snapshot=published(STRUCTURE.id, waiting=True) if waiting else published()
    )
    clock, sink = Passes(world, after, tasks, begun), ListSink()
    ports = memory_ports(world, clock=clock, sink=sink)
    service = Service(
        topology="new", ports=ports, settings=Settings(), policy=policy, executor=Inline(),
        reservations=reservations,
    )  # fmt: skip
    service.run(clock.stop)
    return world, sink
