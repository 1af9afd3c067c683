"""Processes that are lost or silent: others take over their groups, and they return when they are back.

Three ways, by what the lost processes own:
- *nothing* (warm tasks): a route marker leaves them out, and the stream goes on. A RESTORE is not needed.
- *groups that others can take*: a RESTORE of the newest cut, without the lost tasks.
- *groups that nobody else can take* (all tasks of the component are lost, as of a source with one task): the topology
  waits for Storm to start the process anew. The new process asks for a RESTORE.
Tasks that were left out return, by calls and a route marker, when their processes are there again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from leeward.core.control import handover_barrier, ready_barrier
from leeward.core.journal import Journal, StepName
from leeward.core.migration.machine import Machine, Step, watch
from leeward.core.orders import Note, State, WriteControl, WriteJournal
from leeward.core.table import Table


def evacuate(
    tasks: Mapping[int, str], tables: Mapping[str, Table], gone: Collection[int]
) -> tuple[dict[str, Table], tuple[int, ...]]:
    """The tables with other owners for the groups of the tasks that are gone, and those of them that own nothing then.

    A warm task takes all groups of one that is gone; without one they go to the replicas with the fewest. Where every
    task of a component is gone its owners keep their groups.
    """
    result = {name: _evacuated(tables[name], _of(tasks, name), set(gone)) for name in tables}
    owners = {owner for table in result.values() for owner in table}
    return result, tuple(sorted(set(gone) & tasks.keys() - owners))


def _of(tasks: Mapping[int, str], component: str) -> list[int]:
    return sorted(task for task, name in tasks.items() if name == component)


def _evacuated(table: Table, tasks: list[int], gone: set[int]) -> Table:
    there = [task for task in tasks if task not in gone]
    if not there or not gone & set(table):
        return table
    warm = [task for task in there if task not in set(table)]
    heirs = dict(zip(sorted(gone & set(table)), warm, strict=False))
    moved = [heirs.get(owner, owner) for owner in table]
    counts = {task: moved.count(task) for task in there if task in set(moved)}
    for group, owner in enumerate(moved):
        if owner in gone:
            moved[group] = min(counts, key=lambda task: (counts[task], task))
            counts[moved[group]] += 1
    return tuple(moved)


def gone_of(m: Machine) -> set[int]:
    """Silent tasks that take part, but for those whose workers Storm is restarting."""
    return (m.tasks.keys() & (m.silent or set())) - {*m.record.absent, *m.record.restarts}


def owners_of(m: Machine) -> set[int]:
    """Tasks that own groups."""
    return {owner for table in m.record.tables.values() for owner in table}


def unreplaceable(m: Machine, gone: Collection[int]) -> set[int]:
    """Tasks whose groups no other task can take."""
    _, left_out = evacuate(m.tasks, m.record.tables, gone)
    return set(gone) - set(left_out)


def mend(m: Machine, now: float) -> Step | None:
    """IDLE: the step for warm tasks that are silent, or tasks that are back; None: nothing."""
    if m.silent is None:
        return None
    silent = gone_of(m)
    if silent:  # all of them are warm, or the topology waits for their successors
        return None if silent & owners_of(m) else leave_out(m, silent, now)
    back = set(m.record.left_out) - m.silent - m.unheard
    return call_back(m, back, now) if back and now >= m.call_from else None


def leave_out(m: Machine, gone: Collection[int], now: float) -> Step:
    """From the route markers on no task waits for these warm tasks; nothing stops for it."""
    epoch = m.next_epoch
    journal = _journal(m, f"tasks {sorted(gone)} are lost").at(StepName.LEAVE, now, epoch=epoch)
    left_out = tuple(sorted({*m.record.left_out, *gone}))
    record = replace(
        m.record, epoch=epoch, handover=epoch, witnesses=(), absent=left_out, left_out=left_out, restarts=()
    )
    note = Note(action="tasks_left_out", fields={"epoch": epoch, "tasks": sorted(gone)})
    return _announced(replace(m, record=record, journal=journal), note, now)


def call_back(m: Machine, back: Collection[int], now: float) -> Step:
    """All tasks send calls, so that every channel from and to those that return is known to be up."""
    epoch = m.next_epoch
    journal = _journal(m, f"tasks {sorted(back)} are back").at(StepName.PREPARE, now, epoch=epoch)
    record = replace(m.record, epoch=epoch, restarts=tuple(sorted(back)))
    m = replace(m, record=record, journal=journal, tries=0)
    after, todo = watch(m, State.PREPARING, ready_barrier(epoch), now + m.limits.return_s)
    return after, (WriteJournal(journal=journal), WriteControl(record=record), *todo)


def let_return(m: Machine, now: float) -> Step:
    """They take part again from the route markers on."""
    epoch = m.next_epoch
    journal = m.journal.at(StepName.JOIN, now, epoch=epoch)
    left_out = tuple(sorted(set(m.record.left_out) - set(m.record.restarts)))
    note = Note(action="tasks_returned", fields={"epoch": epoch, "tasks": list(m.record.restarts)})
    record = replace(
        m.record, epoch=epoch, handover=epoch, witnesses=(), absent=left_out, left_out=left_out, restarts=()
    )
    return _announced(replace(m, record=record, journal=journal), note, now)


def _announced(m: Machine, note: Note, now: float) -> Step:
    after, todo = watch(m, State.HANDING, handover_barrier(m.record.epoch), now + m.limits.handover_s)
    return after, (WriteJournal(journal=m.journal), WriteControl(record=m.record), note, *todo)


def _journal(m: Machine, reason: str) -> Journal:
    return Journal(
        kind="rejoin",
        epoch=m.journal.epoch,
        cut=m.record.cut,
        last_cut=m.next_cut - 1,
        old_cut=m.record.cut,
        old_handover=m.record.handover,
        reason=reason,
        old_tables=m.record.tables,
        new_tables=m.record.tables,
        old_slots=m.slots,
        new_slots=m.slots,
    )
