"""Rules for the control record and the tasks that follow it, which hold under all faults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from leeward.core.control import ControlRecord, Phase
from leeward.core.instructions import Marker, Mode
from leeward.core.journal import Journal
from leeward.core.outcome import DONE, Ending
from leeward.core.table import Table
from leeward.sim.process import Process

#: (From, to) -> what is on its way.
Queues = Mapping[tuple[int, int], Collection[object]]
#: How a reconfiguration may end.
RESULTS = ("done", "aborted", "undone", "reset")


def unmarked(record: ControlRecord) -> ControlRecord:
    """The record without what the markers of checkpoints and handovers bring to every task."""
    return replace(record, epoch=0, handover=0, witnesses=(), tables={}, ahead=0, coming={}, checkpoint=0, committed=())


class Rules:
    """See the module. `record` is called with each version of the record, `processes` after each step.

    Each breach is an AssertionError.
    """

    def __init__(self, first_tables: Mapping[str, Table]) -> None:
        self._before: ControlRecord | None = None
        self._tables: dict[tuple[int, int], Mapping[str, Table]] = {(0, 0): first_tables}  # by base and handover
        self._cuts: set[int] = set()  # that were asked for
        self._agreed: dict[Process, Mapping[str, Table]] = {}  # tables that were looked at

    def record(self, record: ControlRecord, told: ControlRecord | None, queues: Queues) -> None:
        """The coordinator has written this. `told`: the newest version that every task watches."""
        before, self._before = self._before, record
        assert told is not None and unmarked(record) == unmarked(told), f"{record} is neither told nor in any marker"
        assert record.epoch in (told.epoch, record.handover), f"epoch {record.epoch} is neither told nor in any marker"
        assert record.ahead in (0, told.ahead), f"what is copied ahead for {record.ahead} is told to nobody"
        assert before is None or record.epoch >= before.epoch, f"epoch {record.epoch} follows {before}"
        if record.phase in (Phase.RUN, Phase.RESTORE):
            known = self._tables.setdefault((record.base, record.handover), record.tables)
            assert known == record.tables, f"tables of base {record.base}, handover {record.handover} have changed"
        if record.phase is Phase.MOVE:
            self._stopped(queues)
        for cut in (record.checkpoint, record.cut if record.phase is Phase.PAUSE else 0):
            if cut and cut not in self._cuts:
                assert cut > max(self._cuts, default=0), f"cut {cut} is asked for after {max(self._cuts)}"
                self._cuts.add(cut)

    @staticmethod
    def _stopped(queues: Queues) -> None:
        """Every task has exported its part of a pause's cut: all that was sent before is in somebody's state."""
        for (source, target), items in queues.items():
            tuples = [item for item in items if not isinstance(item, Marker)]
            assert not tuples, f"after barrier 1 {tuples} are on their way from task {source} to task {target}"

    def processes(self, processes: Iterable[Process]) -> None:
        """Each running task uses the tables of its base and handover, and none stands still while the others run."""
        for process in processes:
            protocol = process.protocol
            known = protocol.record
            if protocol.mode is Mode.PAUSED:
                assert known is not None and known.phase is not Phase.RUN, f"task {process.task_id} stands still"
            if protocol.mode is not Mode.RUNNING or self._agreed.get(process) is protocol.tables:
                continue
            self._agreed[process] = protocol.tables
            there = self._tables.get((protocol.base, protocol.handover))
            assert protocol.tables == there, (
                f"task {process.task_id} runs by other tables than those of base {protocol.base}, "
                f"handover {protocol.handover}"
            )

    def end(self, record: ControlRecord, journal: Journal, results: Iterable[str]) -> None:
        """Everything is at rest."""
        assert not journal.open, f"the journal is open: {journal}"
        if journal.old_tables and journal.result and journal.result.ending is Ending.ABORTED:
            assert record.tables == journal.undone_tables, f"aborted, but the tables are not those before: {journal}"
        if journal.old_tables and journal.result == DONE:
            assert record.tables == journal.new_tables, f"done, but the tables are not the new ones: {journal}"
        for result in results:
            assert result.split(":")[0] in RESULTS, result
