"""Counters of the relay since it began: packets, bytes, losses by pair and by pipe, and the processor time it took."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.core.errors import NotReadyError
from leeward.local import processes
from leeward.local.network.plan import End
from leeward.local.processes import Process

_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStatistics:
    """One direction between two nodes."""

    packets: int  #: that entered the first pipe of their way
    bytes: int  #: of IP packets
    dropped: int  #: because a queue was full, of any pipe
    lost: int  #: by the loss of any pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeStatistics:
    """One pipe, for all pairs that share it."""

    packets: int  #: that entered it
    bytes: int  #: of IP packets
    dropped: int  #: because its queue was full
    lost: int  #: by its loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """All that the relay counted."""

    packets: int  #: read from a node, for a node
    strange: int  #: not IPv4, in another's name, or for nobody
    failed: int  #: that the receiver's machine did not take
    wakes: int  #: times that the relay woke up
    processor_s: float
    realtime: bool  #: it goes before all processes that are not real-time
    began_ns: int  #: when the relay began, as time.monotonic_ns(); intervals of a path's rate count from then
    routes: int  #: in force
    refused: int  #: lines about routes that it did not understand
    pairs: dict[tuple[str, str], PairStatistics]  #: (from node, to node)
    pipes: dict[int, PipeStatistics]  #: by their numbers (`plan.pipes_of`); those that were used

    @property
    def microseconds(self) -> float:
        """Processor time for a packet, in microseconds; 0 without one."""
        return 1e6 * self.processor_s / self.packets if self.packets else 0.0


def fetch_statistics(relay: Process, path: Path, ends: Sequence[End]) -> Statistics:
    """Ask a running relay, which writes them into the file `path`. Raises NotReadyError if it does not answer."""
    before = _number(path)
    processes.send(relay, signal.SIGUSR1)
    until = time.monotonic() + _WAIT_S
    while _number(path) <= before:
        if time.monotonic() > until or not processes.is_alive(relay):
            raise NotReadyError("relay: it does not answer.", remedy="See logs/relay.out in the run folder.")
        time.sleep(0.005)
    return parse_statistics(path.read_text(), ends)


def parse_statistics(text: str, ends: Sequence[End]) -> Statistics:
    """The relay numbers its ends as they are here."""
    values = json.loads(text)
    del values["number"]
    pairs = {
        (ends[pair.pop("from")].node, ends[pair.pop("to")].node): PairStatistics(**pair) for pair in values.pop("pairs")
    }
    pipes = {pipe.pop("pipe"): PipeStatistics(**pipe) for pipe in values.pop("pipes")}
    return Statistics(pairs=pairs, pipes=pipes, **values)


def _number(path: Path) -> int:
    return json.loads(path.read_text())["number"] if path.exists() else 0
