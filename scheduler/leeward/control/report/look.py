"""Looks at a topology without leading it: the line of `leeward top`, from what servers keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from leeward.control.clocks import response_s
from leeward.control.lines import read_samples
from leeward.control.monitor import Facts, Monitor, build_view, check_structure, streams_of
from leeward.control.ports import Ports, StreamFacts
from leeward.control.report.history import read_entries
from leeward.control.report.values import Reconfiguration
from leeward.control.snapshot import read_snapshot
from leeward.core.control import ControlRecord
from leeward.core.errors import ClusterRefusedError, NotReadyError, ProtocolError
from leeward.core.journal import StepName
from leeward.core.placing import present_deployment
from leeward.core.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A topology at one moment; None: not known."""

    topology: str
    phase: str = "-"  #: the duty of its tasks, "held", or "-" before the first record
    epoch: int = 0
    replicas: int | None = None
    rate: float | None = None  #: tuples/s out of its sources
    response_s: float | None = None  #: mean of the newest results
    cost_per_h: float | None = None  #: $/h
    backlog: int | None = None  #: tuples that wait before the source
    last: str = ""  #: the newest reconfiguration that is over
    last_at: float | None = None  #: s since 1970
    missing: str = ""  #: why something is not known


class Look:
    """Looks at one topology again and again; rates are known from the second look on."""

    def __init__(self, topology: str, ports: Ports, settings: Settings) -> None:
        """Raises ConfigError if it does not run or is not Leeward's."""
        self._ports, self._settings = ports, settings
        self._structure = ports.nimbus.structure(topology)
        check_structure(self._structure)
        self._mine = ports.open_topology(self._structure)
        self._monitor = Monitor(settings)

    def line(self) -> Line:
        """Now. A server that does not answer is told in `missing`."""
        try:
            record, journal = self._mine.control.read_record(), self._mine.control.read_journal()
            entries = read_entries(list(self._mine.history.read()))
        except ClusterRefusedError as error:
            return Line(topology=self._structure.name, missing=error.message)
        held = journal is not None and journal.step is StepName.HELD
        last = entries[-1] if entries else None
        line = Line(
            topology=self._structure.name, phase="held" if held else str(record.phase) if record else "-",
            epoch=record.epoch if record else 0, last=described(last) if last else "",
            last_at=last.ended if last else None,
        )  # fmt: skip
        return self._measured(line, record)

    def _measured(self, line: Line, record: ControlRecord | None) -> Line:
        if record is None or not record.tables:
            return line
        now, missing, streams = self._ports.clock.now(), "", StreamFacts()
        try:
            samples = read_samples(self._ports.snapshots.metrics(self._structure.id))
            streams = self._ports.snapshots.streams(*streams_of(samples.values()))
        except ClusterRefusedError as error:
            samples, missing = {}, error.message
        rates = self._monitor.observe(samples, now)
        try:
            cluster = read_snapshot(self._ports.cluster.snapshot(_nobody), self._structure.id)
        except (ClusterRefusedError, NotReadyError, ProtocolError) as error:
            return replace(line, missing=error.message)
        owners = {owner for table in record.tables.values() for owner in table}
        facts = Facts(structure=self._structure, cluster=cluster, record=record, rates=rates, streams=streams)
        placed = present_deployment(build_view(facts, self._settings)) or {}
        replicas = sum(sum(counts.values()) for counts in placed.values()) if placed else None
        return replace(
            line, replicas=replicas, rate=self._source_rate(rates.emitted) if rates.span_s else None,
            response_s=response_s(streams, now, samples, owners),
            backlog=max(0, streams.last - streams.done) if samples else None,
            cost_per_h=None if replicas is None else replicas * self._settings.replica_cost,
            missing=missing or ("" if samples else "no task has told its measurements"),
        )  # fmt: skip

    def _source_rate(self, emitted: Mapping[str, float]) -> float:
        return sum(emitted.get(entry.id, 0.0) for entry in self._structure.components if entry.kind == "source")


def described(entry: Reconfiguration) -> str:
    """A reconfiguration in a few words."""
    changes = ", ".join(f"{change.kind} {change.component}" for change in entry.changes)
    ending = "" if entry.ending == "done" else f" {entry.ending}"
    return f"{entry.kind}{ending} {changes or entry.reason}".strip()[:80] + f", {entry.pause_s:.2f} s"


def _nobody() -> None:
    """Wakes nobody."""
