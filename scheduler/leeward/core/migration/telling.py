"""Events about a reconfiguration: for the log, the dashboard and the demo's report."""

from __future__ import annotations

from leeward.core.control import Phase
from leeward.core.journal import StepName
from leeward.core.migration.machine import Machine
from leeward.core.orders import Note, State
from leeward.core.outcome import DONE, Ending, Outcome
from leeward.core.plan import deployment, diff


def phase_note(m: Machine, phase: Phase, **fields: object) -> Note:
    return Note(action="phase", fields={"phase": str(phase), "epoch": m.record.epoch, **fields})


def summary_of(m: Machine, result: Outcome, now: float) -> dict[str, object]:
    """The event of a reconfiguration that ended; `pause_s` is from the announcement to RUN.

    A handover has no pause: there it is the longest time, in any step, that a tuple waited for its group's state.
    Times of steps are by the clock of the coordinator that took them. Where that of the last one is behind by
    `clock_behind_s`, durations that would be negative are 0, and the others are not sure.
    """
    journal, reports = m.journal, m.arrived.values() if m.state in (State.RESTORING, State.HANDING) else ()
    order = list(StepName)
    steps = {StepName(name): at for name, at in journal.times.items() if name != StepName.CLOSED}
    times = sorted(((at, str(name)) for name, at in steps.items()), key=lambda t: (t[0], order.index(StepName(t[1]))))
    ended = max([now, *steps.values()])
    ends = [at for at, _ in times[1:]] + [ended]
    phases = {f"{name}_s": round(end - at, 4) for (at, name), end in zip(times, ends, strict=True)}
    came = sum(report.bytes for report in reports)
    if journal.kind == "handover":  # nothing stops: the longest wait of a tuple counts
        pause_s = max([journal.waited, *(report.waited for report in reports)])
        exported = came = journal.exported + came
    else:
        pause_s = ended - times[0][0] if times else 0.0
        exported = journal.exported
    return {
        "kind": journal.kind,
        "epoch": m.record.epoch,
        "ending": str(result.ending),
        "result": str(result),
        "reason": journal.reason,
        "changes": changes_of(m),
        "pause_s": round(pause_s, 4),
        "phases": phases,
        "clock_behind_s": round(ended - now, 3),
        "steps": journal.steps,
        "bytes_exported": exported,
        "bytes_imported": came,
    }


def result_of(m: Machine) -> Outcome:
    """How the journal's reconfiguration ends when every task is ready."""
    return m.journal.result or (Outcome(Ending.RESET, m.journal.reason) if m.journal.kind == "reset" else DONE)


def changes_of(m: Machine) -> list[dict[str, object]]:
    """Which components the journal's plan scales or moves; empty where the old places are not known."""
    journal = m.journal
    owners = {owner for tables in (journal.old_tables, journal.new_tables) for t in tables.values() for owner in t}
    if not {*journal.new_slots, *owners} <= journal.old_slots.keys() or not owners <= journal.new_slots.keys():
        return []
    before = deployment(journal.old_tables, journal.old_slots)
    after = deployment(journal.new_tables, journal.new_slots)
    return [
        {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
        for c in diff(before, after)
    ]
