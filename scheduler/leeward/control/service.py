"""`leeward serve`: leads one topology, measures it, plans for it, and carries plans out.

One thread. It waits for the lock (a standby does only that), takes over from its predecessor, and then works in
rounds: events of watches, plans of the policy, requests of people. Losing the lock or ZooKeeper sends it
back to waiting; the next leader, perhaps itself, reads journal and record and goes on. When Nimbus answers that the
topology no longer runs, the service deletes what it has left, and ends.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Executor

from leeward.control.coordinator import FaultHook
from leeward.control.errors import LostLeadershipError, TopologyGoneError
from leeward.control.monitor import check_structure
from leeward.control.ports import Ports, Structure
from leeward.control.presence import Presence, patiently
from leeward.control.report.history import Ended
from leeward.control.reservations import Reservations
from leeward.control.term import Term
from leeward.control.tidying import clear
from leeward.core.errors import ClusterRefusedError
from leeward.core.outcome import Outcome, refused
from leeward.core.policy import Policy
from leeward.core.settings import Settings


class Service:
    """See the module. `fault` is called with the name of each step (`coordinator.STEPS`) once it was taken."""

    def __init__(
        self,
        *,
        topology: str,
        ports: Ports,
        settings: Settings,
        policy: Policy | None,
        fault: FaultHook | None = None,
        executor: Executor | None = None,
        reservations: Reservations | None = None,
    ) -> None:
        self._topology, self._ports, self._settings, self._policy = topology, ports, settings, policy
        self._fault, self._executor = fault, executor
        self._reservations = reservations or Reservations()
        self._ended = Ended(ports.sink)
        self.term: Term | None = None  #: while it leads
        self.successor: str | None = None  #: new id of the topology, if it was killed and submitted again

    def run(self, stop: threading.Event, *, until: str | None = None) -> Outcome | None:
        """Serve until `stop`, until the topology is gone, or until the request of id `until` is answered: then the
        answer, else None.

        Waits while Nimbus is away. Raises ConfigError if the topology does not run or is not one of Leeward's.
        """
        nimbus = self._ports.nimbus
        structure = patiently(
            lambda: nimbus.structure(self._topology), stop, self._wait_for, patience=self._ports.clock.patience
        )
        if structure is None:
            return None
        check_structure(structure)
        self._emit("service_started", {"topology_id": structure.id, "policy": self._settings.policy})
        presence = Presence(nimbus, structure, self._executor, tell=self._tell_nimbus)
        while not stop.is_set():
            try:
                result = self._lead(structure, presence, stop, until)
            except (LostLeadershipError, ClusterRefusedError) as error:
                self._emit("leadership_lost", {"why": str(error)})
                stop.wait(1.0)
                continue
            except TopologyGoneError as error:
                self._clear(structure, error, stop)
                return refused(str(error)) if until else None
            if result is not None:
                return result
        return None

    def _lead(
        self, structure: Structure, presence: Presence, stop: threading.Event, until: str | None
    ) -> Outcome | None:
        """One term. None when stopped."""
        presence.check(self._ports.clock.now())
        ports = self._ports.open_topology(structure)
        waited = False
        try:
            while not ports.lock.acquire(1.0):
                if stop.is_set():
                    return None
                if not waited:
                    self._emit("standby", {})
                    waited = True
                presence.check(self._ports.clock.now())
            self._emit("leading", {"topology_id": structure.id})
            self.term = Term(
                structure=structure, ports=self._ports, mine=ports, settings=self._settings, policy=self._policy,
                fault=self._fault, executor=self._executor, presence=presence, reservations=self._reservations,
                ended=self._ended,
            )  # fmt: skip
            return self.term.work(stop, until)
        finally:
            if self.term is not None:
                self.term.close()
            self.term = None
            ports.lock.release()

    def _clear(self, structure: Structure, gone: TopologyGoneError, stop: threading.Event) -> None:
        """The topology is gone: delete its leftovers."""
        self._emit("topology_gone", {"topology_id": structure.id, "why": str(gone)})
        try:
            self.successor = self._ports.nimbus.topologies().get(self._topology)
            deleted = clear(
                self._ports.leftovers, structure.id, self._ports.clock, stop, patient=self.successor is None
            )
        except ClusterRefusedError as error:
            self._emit("tidy_failed", {"topology_id": structure.id, "why": str(error), "remedy": "leeward tidy"})
            return
        fields = {"znodes": deleted.znodes, "keys": deleted.keys, "placement": deleted.placement}
        self._emit("tidied", {"topology_id": structure.id, **fields})

    def _wait_for(self, why: str) -> None:
        self._emit("waiting", {"why": why})

    def _tell_nimbus(self, why: str) -> None:
        self._emit("server_away" if why else "server_back", {"server": "Nimbus", **({"why": why} if why else {})})

    def _emit(self, action: str, fields: Mapping[str, object]) -> None:
        self._ports.sink.emit(action, {"topology": self._topology, **fields})
