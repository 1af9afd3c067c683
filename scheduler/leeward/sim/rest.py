"""The end of a `Ends`'s run: faults stop, and everything must come to rest in bounded steps, with all results there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.core.control import Phase
from leeward.core.instructions import Marker, Mode
from leeward.core.migration import Machine
from leeward.core.orders import State
from leeward.sim import faults

if TYPE_CHECKING:
    from leeward.sim.ends import Ends
    from leeward.sim.process import Process

#: Rounds until all must be at rest. In each everybody does all that it can.
ROUNDS = 400


def come_to_rest(pair: Ends) -> None:
    """Faults stop. Everything must come to rest, in bounded steps, with all results there."""
    pair.story.append("faults stop")
    faults.forgive(pair)
    still: int | None = None  # newest cut when it was at rest first; one after it shows that nothing was lost since
    for _ in range(ROUNDS):
        if go_round(pair):
            record, journal = pair.world.record, pair.world.journal
            assert record is not None and journal is not None
            newest = max(record.committed, default=0)
            still = newest if still is None else still
            if newest > still:
                pair.check()
                pair.check_end()
                results = [str(fields["result"]) for fields in pair.sink.of("reconfiguration_ended")]
                pair.rules.end(record, journal, results)
                return
        pair.check()
    raise AssertionError(f"it does not come to rest: {_state(pair)}")


def get_going(pair: Ends, cuts: int) -> None:
    """Before the faults begin: all tasks work until so many cuts are committed. A restore or a restart needs them, and
    the few steps of a run would seldom come to one.
    """
    for _ in range(ROUNDS):
        if pair.world.record is not None and len(pair.world.record.committed) >= cuts:
            return
        go_round(pair, numbers=1)
        pair.check()


def go_round(pair: Ends, numbers: int = 12) -> bool:
    """Everybody does all that it can, a source so many numbers; True if all is at rest then."""
    if pair.coordinator is None:
        pair.lead()
    coordinator, machine = pair.coordinator, _machine(pair)
    if coordinator is not None and coordinator.machine.state is State.HELD:
        pair.vault.unreadable.clear()  # a person brings back what Redis lost
        cuts = coordinator.machine.record.committed
        pair.guarded(coordinator.choose, pair.rng.choice(cuts))
    pair.tell_silence()
    if pair.coordinator is not None:
        pair.guarded(pair.coordinator.work)
    if pair.coordinator is not None:
        pair.guarded(pair.coordinator.tidy)
        pair.vault.forget()
    pair.storm.plugin_passes()
    busy = pair.rng.random() < 0.4  # supervisors come late: processes of before go on meanwhile
    if not busy:
        busy = pair.supervise_all()
    pair.network.down = {channel for channel in sorted(pair.network.down) if pair.rng.random() < 0.5}
    for process in pair.everything():
        busy = _exhaust(pair, process, numbers) or busy
    for channel in pair.network.order:
        if channel in pair.network.busy and (receiver := pair.receiver(channel[1])):
            while channel in pair.network.busy:
                receiver.receive(channel[0], pair.network.take(channel))
    _pass_time(pair, busy or coordinator is not pair.coordinator or machine is not _machine(pair))
    return _at_rest(pair)


def _machine(pair: Ends) -> Machine | None:
    return pair.coordinator.machine if pair.coordinator else None


def _pass_time(pair: Ends, busy: bool) -> None:
    """Where all wait for a deadline of the coordinator it may come at once."""
    pair.clock.time += 0.5
    machine = _machine(pair)
    waits = any(process.jobs or process.inbox or process.looks for process in pair.everything())
    waits = waits or bool(pair.network.down)
    if not busy and not waits and machine is not None and machine.due is not None:
        pair.clock.time = max(pair.clock.time, machine.due)


def _exhaust(pair: Ends, process: Process, numbers: int) -> bool:
    """Let it do all that it can; False if that was nothing."""
    done = pair.exhaust(process)
    if process.kind == "source":
        for _ in range(numbers):
            if not process.next_tuple():
                break
            done = True
    return done


def _at_rest(pair: Ends) -> bool:
    coordinator, record = pair.coordinator, pair.world.record
    if coordinator is None or record is None or record.phase is not Phase.RUN or record.absent:
        return False
    if coordinator.machine.state is not State.IDLE or coordinator.machine.journal.open:
        return False
    owners = {owner for table in record.tables.values() for owner in table}
    newest = [processes[-1] for processes in pair.processes.values() if processes]
    running = len(newest) == len(pair.processes) and all(
        process.mode is Mode.RUNNING and process.protocol.base == record.base for process in newest
    )
    still = not any(process.protocol.buffered for process in newest) and pair.application.finished()
    return running and still and all(p.protocol.tables == record.tables for p in newest if p.task_id in owners)


def _state(pair: Ends) -> str:
    modes = {
        task: [(str(p.mode), p.protocol.base, p.protocol.handover, p.protocol.buffered) for p in processes]
        for task, processes in pair.processes.items()
    }
    machine = _machine(pair)
    about = (machine.state, machine.story[-4:], machine.missing, machine.silent) if machine else None
    data = {c: [i for i in q if not isinstance(i, Marker)] for c, q in pair.network.queues.items() if q}
    return f"{about} {modes} channels {data} written {len(pair.outside.written)}"
