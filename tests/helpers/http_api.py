"""The API over a service in memory: reports of two topologies, a desk whose requests are answered, no socket."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module

from starlette.testclient import TestClient

from leeward.adapters.http.access import hosts_of, tokens_of
from leeward.adapters.http.application import application
from leeward.adapters.http.desk import Desk
from leeward.adapters.http.studies import Studies
from leeward.cli._beside import EXPLAIN
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.report.knowledge import Knowledge
from leeward.core.control import ControlRecord
from leeward.core.metrics import TaskMetrics
from leeward.core.outcome import DONE, Outcome
from leeward.core.peers import Directory
from leeward.core.plan import Slot
from leeward.core.settings import settings_from
from leeward.core.table import first_tables
from leeward.sim.memory import ManualClock, MemoryRequests, World, memory_ports, snapshot_text

TOKEN = "a-token-of-the-tests-0123456789"
ACTING = {"Authorization": f"Bearer {TOKEN}"}
CHANGE = {"component": "work", "kind": "scale-out", "before": {"n1": 1}, "after": {"n1": 1, "n2": 1}}
DEPLOYMENT = {"source": {"n1": 1}, "work": {"n1": 1}, "sink": {"n2": 1}}


class Numbered(MemoryRequests):
    """Ids as ZooKeeper gives them, each request answered at once as `reply` says; None: not answered."""

    def __init__(self, world: World, reply: Callable[[], Outcome | None]) -> None:
        super().__init__(world)
        self._world, self._reply = world, reply

    def ask(self, body):
        name = f"r-{len(self._world.answers):010}"
        self._world.requests[name] = dict(body)
        found = self._reply()
        if found is not None:
            self._world.answers[name] = found
        return name

    def answer_to(self, name, wake=None):
        self._world.check("zookeeper")
        return self._world.answers.get(name)


class AsksPeers:
    """A policy that decides by letters, and never gets as far."""

    def __init__(self, _: object) -> None:
        pass

    def directory(self) -> Directory:
        return Directory(kinds=(), addresses={0: ("127.0.0.1", 1)}, key=b"")

    def decide_all(self, views, *, now, rng):
        raise AssertionError("it is asked without a way to its peers")


def here(function, arguments, options, *, limit_s, over):
    """As `call_apart`, in this process: the arguments and the value are pickled, too."""
    module, _, name = function.partition(":")
    arguments, options = pickle.loads(pickle.dumps((arguments, options)))
    return pickle.loads(pickle.dumps(getattr(import_module(module), name)(*arguments, **options)))


class Stage:
    """Everything behind the API."""

    def __init__(self) -> None:
        self.clock, self.world = ManualClock(now=1_000_000.0), World()
        self.knowledge = Knowledge(self.clock)
        self.desk = Desk(self.knowledge)
        self.reply: Outcome | None = DONE
        self.stack = ExitStack()
        structure = Structure(
            id="taxi-1", name="taxi", components=(ComponentFacts(id="work", kind="stateful", inputs=()),)
        )
        self.world.structures["taxi"] = structure
        self.world.snapshot = snapshot_text(
            nodes={"n1": [6700], "n2": [6700]}, topology_id="taxi-1", name="taxi", tasks={1: "work"},
            slots={1: Slot("n1", 6700)},
        )  # fmt: skip
        ports = memory_ports(self.world, clock=self.clock, sink=self.knowledge)
        mine = replace(ports.open_topology(structure), requests=Numbered(self.world, lambda: self.reply))
        self.ports = replace(ports, open_topology=lambda _: mine)
        self.stack.enter_context(self.desk.serving("taxi", self.ports))
        self.desk.choose(settings_from({}))
        self.studies = Studies(self.desk, EXPLAIN, over=lambda: False, run=here, sleep=self.sleep, clock=self.clock.now)
        self.tell()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.time += seconds

    def tell(self) -> None:
        """Some minutes in the life of a topology."""
        emit = self.knowledge.emit
        emit("service_started", {"topology": "taxi", "topology_id": "taxi-1", "policy": "edrp"})
        emit("leading", {"topology": "taxi"})
        emit("cluster_seen", {"topology": "taxi", **self.structure()})
        for second in range(90):
            self.clock.time += 1
            if second == 30:
                wanted = {**DEPLOYMENT, "work": {"n1": 1, "n2": 1}}
                made = {"reason": "work is slow", "epoch": 1, "changes": [CHANGE], "response_s": 0.2}
                emit("plan_made", {"topology": "taxi", **made, "deployment": wanted})
                emit("reconfiguration_started", {"topology": "taxi", "epoch": 2, "changes": [CHANGE], "reason": "slow"})
            if second == 32:
                emit("reconfiguration_ended", {
                    "topology": "taxi", "kind": "handover", "epoch": 2, "ending": "done", "result": "done",
                    "changes": [CHANGE], "pause_s": 0.05, "phases": {"ahead_s": 1.5, "handover_s": 0.5},
                })  # fmt: skip
            placed = DEPLOYMENT if second < 32 else {**DEPLOYMENT, "work": {"n1": 1, "n2": 1}}
            emit("measured", self.measured(100.0 + second, placed))
        emit("learnt", {"topology": "taxi", **self.learnt()})
        emit("plan_refused", {"topology": "taxi", "why": "the gain 0.0010 is below minimum_gain 0.02"})

    @staticmethod
    def measured(rate: float, placed):
        return {
            "topology": "taxi", "state": "idle", "phase": "run", "epoch": 2, "rates": {"source": rate, "work": rate},
            "service_rates": {"work": 80.0}, "queued": {"work": 3}, "response_s": 0.25, "cost_per_h": 4.0,
            "backlog": 12, "state_bytes": 2048, "deployment": placed,
        }  # fmt: skip

    @staticmethod
    def learnt():
        model = {
            "utilisation": 0.6, "measured_s": 0.02, "learnt_s": 0.021, "error_s": 0.001, "mm1_s": 0.031,
            "samples": 40.0, "low": 0.2, "high": 0.7,
        }  # fmt: skip
        link = {"up_rate": 4e7, "down_rate": 6e7, "trip_s": 0.0004, "ups": 12, "downs": 5}
        return {
            "models": {"work": model}, "stores": {"n1": link, "n2": {**link, "down_rate": None, "downs": 0}},
            "selectivities": {"source>work": {"ratio": 1.0, "error": 0.01, "windows": 9.0}},
            "restarts": [{"started": 2, "pause_s": 9.5}],
            "handover": {"constant_s": 0.02, "per_byte_s": 5e-8, "off_s": 0.003, "handovers": 4},
        }  # fmt: skip

    @staticmethod
    def structure(nodes: int = 3):
        components = [
            {"id": name, "tasks": 4, "max_replicas": 4, "source": name == "source", "stateful": name != "source"}
            for name in ("sink", "source", "work")
        ]
        seen = [{"id": f"n{n}", "slots": 2, "capacity": 8, "draining": n == 3} for n in range(1, nodes + 1)]
        return {"components": components, "streams": [["source", "work"], ["work", "sink"]], "nodes": seen}

    def application(self, *, token: str = TOKEN, more=()):
        """Call it in an event loop, or where none runs."""
        return application(
            self.knowledge,
            self.desk,
            self.studies,
            tokens=tokens_of(token),
            hosts=hosts_of("127.0.0.1"),
            stop=asyncio.Event(),
            more=more,
        )

    @contextmanager
    def client(self, **options):
        """Asks as a program of this machine does; a fault of the API is a 500, not an exception of the test."""
        with TestClient(
            self.application(**options), base_url="http://127.0.0.1:8600", raise_server_exceptions=False
        ) as client:
            yield client


class Working(Stage):
    """A topology that has processed 100 tuples/s since the beginning, so that plans can be made for it."""

    TASKS = {1: "source", 2: "work", 3: "work", 4: "sink"}
    NODES = {1: "n1", 2: "n1", 3: "n2", 4: "n2"}

    def __init__(self) -> None:
        super().__init__()
        made = (("sink", "stateful", ("work",)), ("source", "source", ()), ("work", "stateful", ("source",)))
        components = tuple(ComponentFacts(id=name, kind=kind, inputs=inputs) for name, kind, inputs in made)
        self.world.structures["taxi"] = Structure(id="taxi-1", name="taxi", components=components)
        self.world.snapshot = snapshot_text(
            nodes={"n1": [6700, 6701], "n2": [6700, 6701]}, topology_id="taxi-1", name="taxi", tasks=self.TASKS,
            slots={task: Slot(node, 6700) for task, node in self.NODES.items()},
        )  # fmt: skip
        self.world.record = ControlRecord(tables=first_tables(self.TASKS, None))
        self.measure()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.measure()

    def measure(self) -> None:
        """The newest measurements of the tasks."""
        done, at = round(100 * (self.clock.time - 1_000_000)), self.clock.time
        share = done // 2

        def task(component: str, **figures) -> str:
            return TaskMetrics(component=component, pid=1, t=at, mode="running", **figures).to_line()

        work = task("work", received={"source": share}, sent={"default": share}, processed=share, busy_s=share / 200)
        self.world.metrics["taxi-1"] = {
            1: task("source", sent={"default": done}, processed=done, busy_s=done / 1000), 2: work, 3: work,
            4: task("sink", received={"work": done}, processed=done, busy_s=done / 1000),
        }  # fmt: skip


def sse(text: str) -> list[dict]:
    """The events of a stream: their fields, `data` parsed."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found
