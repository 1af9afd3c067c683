"""The parts of a simulated cluster as they see each other, so that no part imports the one that holds it."""

from __future__ import annotations

import random
from typing import Any, Protocol

from leeward.core.control import ControlRecord
from leeward.core.plan import Slot
from leeward.core.table import Table
from leeward.sim.memory import ManualClock, World
from leeward.sim.network import Network, Outbox
from leeward.sim.vault import Vault


class AWorker(Protocol):
    """A worker, as its processes see it."""

    slot: Slot
    outboxes: dict[int, Outbox]
    stopped: bool


class AProcess(Protocol):
    """A task's process, as its courier and the application see it."""

    task_id: int
    component_name: str
    state: Any
    task: Any
    looks: bool
    protocol: Any

    @property
    def pair(self) -> Any: ...

    def post(self, work: Any) -> None: ...

    def emit(self, component: str, item: Any, key: str | None) -> None: ...

    def send(self, instruction: Any) -> None: ...


class ARig(Protocol):
    """The whole cluster, as its processes and its Storm see it."""

    rng: random.Random
    world: World
    clock: ManualClock
    network: Network
    vault: Vault
    shape: Any
    application: Any
    topology: str
    topology_id: str
    practice: int
    piece_bytes: int
    first_tables: dict[str, Table]
    processes: Any  #: task -> its processes, the newest last
    joined: set[int]
    mail: dict[tuple[int, int], list[bytes]]
    losses: list[str]

    def record_for(self, process: Any) -> tuple[ControlRecord | None, bool]: ...

    def on_the_way(self, piece: bytes) -> list[bytes]: ...
