"""Leads every topology of the cluster that is one of Leeward's: a service on a thread of its own for each.

Each has its lock, its journal and its policy, so a failure of one is not another's, and a standby takes over each by
itself. The slots that one uses, or is about to use, are taken for the others (`reservations.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from leeward.control.ports import EventSink, Nimbus
from leeward.core.errors import ClusterRefusedError, LeewardError

#: Between two looks at what runs, seconds, unless a setting says otherwise.
LOOK_S = 2.0
#: A service that failed is begun again after so many seconds, while its topology runs.
RETRY_S = 30.0
#: Serves one topology by name until the event is set or the topology is gone.
Serve = Callable[[str, threading.Event], None]


def to_start(running: Mapping[str, str], led: Collection[str], foreign: Collection[str]) -> list[str]:
    """Names of the topologies to begin with: neither led (ids) nor known as foreign (ids), by name. Pure."""
    return [name for name, identity in sorted(running.items()) if identity not in {*led, *foreign}]


@dataclass(slots=True)
class _Led:
    name: str
    thread: threading.Thread
    looks: int = 0  # since its service has ended


class Fleet:
    """See the module. `is_ours(name)` says whether a topology is one of Leeward's."""

    def __init__(
        self, *, nimbus: Nimbus, is_ours: Callable[[str], bool], serve: Serve, sink: EventSink, look_s: float = LOOK_S
    ) -> None:
        self._look_s = look_s
        self._nimbus, self._is_ours, self._serve, self._sink = nimbus, is_ours, serve, sink
        self._led: dict[str, _Led] = {}  # by topology id
        self._foreign: set[str] = set()
        self._failed: dict[str, str] = {}  # id -> name: a service that has failed does not tell of the topology's end
        self._away = False

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; then waits for every service to let go of its lock."""
        while not stop.is_set():
            self._look(stop)
            stop.wait(self._look_s)
        for led in self._led.values():
            led.thread.join()

    def _look(self, stop: threading.Event) -> None:
        try:
            running = self._nimbus.topologies()
            self._led = {key: led for key, led in self._led.items() if self._stays(key, led, running)}
            self._tell_gone(running)
            self._foreign &= set(running.values())
            names = {led.name for led in self._led.values()}
            for name in to_start(running, self._led, self._foreign):
                if name not in names:  # the service of a killed one tidies up first, and its end is told
                    self._begin(name, running[name], stop)
            if self._away:
                self._sink.emit("server_back", {"server": "Nimbus"})
            self._away = False
        except ClusterRefusedError as error:
            if not self._away:
                self._sink.emit("waiting", {"why": str(error)})
            self._away = True

    def _tell_gone(self, running: Mapping[str, str]) -> None:
        for identity, name in list(self._failed.items()):
            if identity not in running.values() and identity not in self._led:
                del self._failed[identity]
                why = f"topology {identity} no longer runs."
                self._sink.emit("topology_gone", {"topology": name, "topology_id": identity, "why": why})

    def _stays(self, identity: str, led: _Led, running: Mapping[str, str]) -> bool:
        if led.thread.is_alive():
            return True
        led.looks += 1
        return identity in running.values() and led.looks * self._look_s < RETRY_S

    def _begin(self, name: str, identity: str, stop: threading.Event) -> None:
        if not self._is_ours(name):
            self._foreign.add(identity)
            return
        thread = threading.Thread(target=self._lead, args=(name, identity, stop), name=f"leeward-{name}", daemon=True)
        self._led[identity] = _Led(name, thread)
        self._failed.pop(identity, None)
        thread.start()

    def _lead(self, name: str, identity: str, stop: threading.Event) -> None:
        try:
            self._serve(name, stop)
        except LeewardError as error:
            self._tell_failed(name, identity, str(error))
        except Exception as error:  # a fault of ours in one service must not end the others unseen
            self._tell_failed(name, identity, f"{type(error).__name__}: {error}")
            raise

    def _tell_failed(self, name: str, identity: str, why: str) -> None:
        self._failed[identity] = name
        self._sink.emit("service_failed", {"topology": name, "why": why})
