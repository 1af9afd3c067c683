"""The world of the service, as small protocols.

`sim/memory.py` has the in-memory twins, `adapters/` the real ones; one contract suite holds both to this page.
Every method may raise ClusterRefusedError (theirs, not ours); other errors are named where they matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leeward.core.control import ControlRecord, Loss, Report
from leeward.core.journal import Journal
from leeward.core.leftovers import Leftover
from leeward.core.network import Network
from leeward.core.outcome import Outcome
from leeward.core.peers import Letter
from leeward.core.plan import Placement
from leeward.core.standing import Standing

#: Called from any thread when something watched may have changed; it must only wake a thread.
Wake = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentFacts:
    """A component as it was submitted."""

    id: str
    kind: str  #: "source", "stateful", "stateless"; "" if it is none of Leeward's
    inputs: tuple[str, ...]  #: upstream components by table-routed streams, by name
    conf: Mapping[str, object] = field(default_factory=dict)  #: its own configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A running topology as it was submitted."""

    id: str  #: Storm's id
    name: str
    components: tuple[ComponentFacts, ...]  #: spouts and bolts, by name
    conf: Mapping[str, object] = field(default_factory=dict)  #: the topology's configuration


class Nimbus(Protocol):
    """Storm's Nimbus; the adapter finds the leader and tries again."""

    def topologies(self) -> Mapping[str, str]:
        """Name -> id of the running topologies."""

    def structure(self, name: str) -> Structure:
        """Raises ConfigError naming the running ones if there is no such topology."""

    def rebalance(self, name: str, *, workers: int, executors: Mapping[str, int]) -> None:
        """Let Nimbus place at once, without a wait and without overrides."""

    def close(self) -> None:
        """Hang up."""


class LeaderLock(Protocol):
    """At most one holder at a time works on a topology."""

    def acquire(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for the lock; True if it is held now. 0: only if nobody has it or waits for it."""

    def held(self) -> bool:
        """False once the session was lost: another process may hold the lock from then on."""

    def release(self) -> None:
        """Give it up; nothing happens if it is not held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Documents that a coordinator reads when it takes over."""

    record: ControlRecord | None
    journal: Journal | None


class ControlStore(Protocol):
    """Control record, journal and placement of one topology; the coordinator that claimed last writes them."""

    def claim(self) -> Claim:
        """Become the only writer: from now on every write of an earlier claim raises LostLeadershipError."""

    def write_record(
        self, record: ControlRecord, *, told: bool = True, journal: Journal | None = None, barrier: str = ""
    ) -> None:
        """`told`: to every task, else to sources. `journal`: written with it, both or neither. `barrier`: is there with
        it, empty, so that no task has to make it first.

        Raises LostLeadershipError if another coordinator has claimed since.
        """

    def write_journal(self, journal: Journal) -> None:
        """A closed one answers the request that it names, both or neither.

        Raises LostLeadershipError if another coordinator has claimed since.
        """

    def write_placement(self, placement: Placement | None) -> None:
        """None takes it away. Raises LostLeadershipError if another coordinator has claimed since."""

    def write_standing(self, standing: Standing) -> None:
        """Raises LostLeadershipError if another coordinator has claimed since."""

    def read_standing(self) -> Standing | None:
        """Decisions of people, without claiming; None if there are none. Those that cannot be read are a freeze."""

    def write_learnt(self, text: str) -> None:
        """The learnt record. Raises LostLeadershipError if another coordinator has claimed since."""

    def read_learnt(self) -> str | None:
        """Its text, without claiming; None if there is none."""

    def read_record(self) -> ControlRecord | None:
        """The record in force, without claiming; None if there is none."""

    def read_journal(self) -> Journal | None:
        """The journal, without claiming; None if there is none."""

    def read_placement(self) -> Placement | None:
        """The wanted placement; None if there is none or it cannot be read."""


class BarrierStore(Protocol):
    """Documents that the tasks of one topology write."""

    def reports(
        self, barrier: str, known: Iterable[int], wake: Wake, *, likely: Iterable[int] = ()
    ) -> Mapping[int, Report]:
        """Task -> report of those at the barrier that are not `known`; `wake` is called at the next arrival.

        `likely`: tasks that are waited for; their reports may be asked for before it is known that they are there.
        """

    def recoveries(self, wake: Wake) -> Mapping[int, Loss]:
        """Epoch -> what a task asked for a reset in it for; `wake` is called at the next one."""

    def drop(self, *, below: int, epoch: int) -> None:
        """Delete barriers of cuts under `below`, and ready barriers and recovery requests under `epoch`."""


class ClusterStore(Protocol):
    """Documents about all topologies: the plugin's snapshot and the nodes that drain."""

    def snapshot(self, wake: Wake) -> str | None:
        """The plugin's newest snapshot, as JSON text; `wake` is called when it publishes again."""

    def placements(self) -> Mapping[str, Placement]:
        """Topology name -> wanted placement, also of topologies that no longer run; unreadable ones are left out."""

    def draining(self) -> frozenset[str]:
        """Nodes that shall become empty."""

    def set_draining(self, node: str, draining: bool) -> None:
        """Raise or take away the flag."""


class RequestStore(Protocol):
    """Requests of people to the service of one topology: one request at a time, in the order in which they came."""

    def ask(self, body: Mapping[str, object]) -> str:
        """Leave a request; its id."""

    def pending(self, wake: Wake) -> Mapping[str, Any] | None:
        """The request that waits longest, with its `id`; `wake` is called when one comes or is answered."""

    def answer(self, name: str, result: Outcome) -> None:
        """It is dealt with."""

    def answer_to(self, name: str, wake: Wake | None = None) -> Outcome | None:
        """None while it is not dealt with; `wake` is called when it is."""


class HistoryStore(Protocol):
    """The newest reconfigurations of one topology that are over, kept for as long as it runs; a bounded list."""

    def add(self, entry: Mapping[str, object]) -> None:
        """Append an entry; the oldest ones go when there are too many."""

    def read(self) -> Sequence[Mapping[str, Any]]:
        """Oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """Ends of the application's streams, for backlog and response time."""

    last: int = 0  #: last sequence number in the input stream
    done: int = 0  #: last sequence number that the source has durably consumed
    #: (w0, w) of the newest results: left the source, written; epoch s by the clocks of their nodes
    results: tuple[tuple[float, float], ...] = ()
    now: float | None = None  #: when they were read, epoch s by the datastore's clock


class SnapshotStore(Protocol):
    """Redis: the fence, the cuts, the measurements."""

    def raise_fence(self, topology_id: str, epoch: int, base: int = 0) -> None:
        """No writer of an older epoch, and no sink of an older base, gets through from now on; lower numbers than those
        in force change nothing.
        """

    def delete_cuts(self, topology_id: str, *, below: int) -> int:
        """Delete every cut under this number; the number of keys deleted."""

    def metrics(self, topology_id: str) -> Mapping[int, str]:
        """Task -> the JSON line that it published last."""

    def beats(self, topology_id: str) -> Mapping[int, str]:
        """Task -> its last sign of life (`core.control.GONE`)."""

    def streams(self, source: str, results: str) -> StreamFacts:
        """About these streams; "" or absent ones give zeros."""

    def close(self) -> None:
        """Hang up."""


class LeftoverStore(Protocol):
    """The documents and keys of topologies in ZooKeeper and Redis, whether they run or not."""

    def found(self) -> Mapping[str, Leftover]:
        """By topology id; changes nothing."""

    def delete(self, topology_id: str) -> Leftover:
        """Delete everything of this topology; returns its names. A placement stays if it is another topology's."""


class Post(Protocol):
    """Carries a policy's letters to peers."""

    def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
        """Send them in order; (server, answer) of each that came. A peer that does not answer gives none, and the
        answers of one call are at least some time behind those of the call before."""


class Clock(Protocol):
    """Time and waiting.

    `now` never steps, as deadlines and rates depend on it: it is the wall clock's time at the start of this process,
    plus the time that has passed since. It is compared with the times that tasks write; they count in the same way.
    Between two processes it differs by what the wall clock was corrected by, or drifted, between their starts.
    """

    def now(self) -> float:
        """Seconds since 1970."""

    def patience(self, seconds: float) -> float:
        """How long to really wait when `seconds` may pass: simulated time passes at once."""


class EventSink(Protocol):
    """Where decisions go: logs, the live view, the tests."""

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        """Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPorts:
    """The ports of one topology, opened anew for each term of leadership."""

    control: ControlStore
    barriers: BarrierStore
    requests: RequestStore
    lock: LeaderLock
    history: HistoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of the service."""

    nimbus: Nimbus
    snapshots: SnapshotStore
    cluster: ClusterStore
    clock: Clock
    sink: EventSink
    open_topology: Callable[[Structure], TopologyPorts]
    leftovers: LeftoverStore
    network: Network | None = None  #: sites and links of the nodes, if they are known
