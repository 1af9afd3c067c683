"""The faults of a `Ends`. A fault is an event that the seed draws; drawn again, most faults are undone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from leeward.control.errors import LostLeadershipError
from leeward.core.errors import ClusterRefusedError

if TYPE_CHECKING:
    from leeward.sim.ends import Ends
    from leeward.sim.process import Process

Fault = Callable[["Ends"], None]

#: Share of the runs that have no faults.
CALM = 0.15


def disturb(pair: Ends) -> None:
    """One of the faults."""
    if not pair.faults:
        return
    fault = pair.rng.choice(pair.faults)
    pair.story.append(fault.__name__.replace("_", " "))
    fault(pair)


def some_of(rng: random.Random) -> tuple[Fault, ...]:
    """The faults of one run. Few of them go deeper: a reset by one hides what another would show. Some runs have none:
    nothing may be given up there.
    """
    if rng.random() < CALM:
        return ()
    return tuple(rng.sample(FAULTS, rng.randint(2, len(FAULTS))))


def forgive(pair: Ends) -> None:
    """Undo all that is not mended by the protocol itself."""
    pair.fuse, pair.vault.full, pair.storm.refuses, pair.damage = None, False, False, 0
    pair.world.refuse.clear()
    pair.storm.down.clear()
    pair.storm.frozen.clear()
    pair.network.slow.clear()
    for worker in pair.storm.workers.values():
        worker.stopped = False
    for process in pair.everything():
        process.stopped = process.hangs = False


# --- processes


def kill_process(pair: Ends) -> None:
    process = pair.some_process()
    if process is not None:
        pair.story.append(f"  task {process.task_id}")
        pair.storm.kill_process(process)


def kill_worker(pair: Ends) -> None:
    if pair.storm.workers:
        slot = pair.rng.choice(sorted(pair.storm.workers))
        pair.story.append(f"  tasks {sorted(pair.storm.workers[slot].tasks)}")
        pair.storm.kill_worker(slot)


def stop_or_continue_process(pair: Ends) -> None:
    if process := _any_process(pair):
        process.stopped = not process.stopped
        pair.story.append(f"  task {process.task_id} {'stopped' if process.stopped else 'goes on'}")


def stop_or_continue_worker(pair: Ends) -> None:
    if pair.storm.workers:
        worker = pair.storm.workers[pair.rng.choice(sorted(pair.storm.workers))]
        worker.stopped = not worker.stopped
        pair.story.append(f"  tasks {sorted(worker.tasks)} {'stopped' if worker.stopped else 'go on'}")


def stores_answer_a_process_late(pair: Ends) -> None:
    if process := _any_process(pair):
        process.hangs = not process.hangs
        pair.story.append(f"  task {process.task_id} {'waits' if process.hangs else 'goes on'}")


def _any_process(pair: Ends) -> Process | None:
    """Also one that does not run, or that was replaced."""
    everything = pair.everything()
    return pair.rng.choice(everything) if everything else None


# --- coordinators


def kill_coordinator(pair: Ends) -> None:
    pair.fuse = pair.rng.randint(0, 8)


def usurp(pair: Ends) -> None:
    if pair.coordinator is not None:
        pair.zombies.append(pair.coordinator)
        pair.fuse = None
        pair.lead()


def zombie_coordinator_works(pair: Ends) -> None:
    if pair.zombies and pair.coordinator is not None:
        world = pair.world
        before = world.record, world.journal, world.placement
        pair.fuse = None
        try:
            pair.zombies[-1].work()
        except (LostLeadershipError, ClusterRefusedError):
            pair.zombies.pop()
        assert (world.record, world.journal, world.placement) == before, "a zombie has written"


# --- stores


def redis_refuses_or_is_back(pair: Ends) -> None:
    pair.world.refuse ^= {"redis"}


def redis_is_full_or_not(pair: Ends) -> None:
    pair.vault.full = not pair.vault.full


def redis_loses_a_cut(pair: Ends) -> None:
    """Never the only one that every node can read: nobody could go on from that. Often a process is lost as well, else
    the next checkpoint is there before anybody needs this one.
    """
    committed = pair.world.record.committed if pair.world.record else ()
    if len(committed) > 1 and pair.vault.is_in_redis(committed[0]):
        pair.story.append(f"  cut {committed[-1]}")
        pair.vault.unreadable.add(committed[-1])
        if pair.rng.random() < 0.7:
            kill_process(pair)


def a_piece_is_damaged(pair: Ends) -> None:
    pair.damage = 1


# --- Storm


def nimbus_refuses_or_is_back(pair: Ends) -> None:
    pair.world.refuse ^= {"nimbus"}


def plugin_refuses_or_agrees_again(pair: Ends) -> None:
    pair.storm.refuses = not pair.storm.refuses
    pair.storm.plugin_passes()


def a_supervisor_stops_or_is_back(pair: Ends) -> None:
    """Workers that it was to end go on beside their successors."""
    pair.storm.frozen ^= {pair.rng.choice(sorted(pair.storm.nodes))}


def storm_drops_a_batch(pair: Ends) -> None:
    network, rng = pair.network, pair.rng
    if network.busy:
        channel = rng.choice(sorted(network.busy))
        size = len(network.queues[channel])
        first = rng.randint(0, size - 1)
        last = min(size, first + rng.randint(1, 4))
        network.drop(channel, first, last)


def a_channel_is_cut(pair: Ends) -> None:
    pair.network.down.add(pair.rng.choice(pair.network.order))


def a_channel_is_slow_or_not(pair: Ends) -> None:
    pair.network.slow ^= {pair.rng.choice(pair.network.order)}


def a_node_goes_or_comes_back(pair: Ends) -> None:
    storm = pair.storm
    node = pair.rng.choice(sorted(storm.nodes))
    if node in storm.down:
        storm.down.discard(node)
    elif len(storm.down) < 1:
        storm.down.add(node)
        for slot in [slot for slot in storm.workers if slot.node == node]:
            storm.kill_worker(slot)
        pair.vault.lost_swap |= {(node, cut) for cut in pair.vault.parts}
    storm.plugin_passes()


FAULTS: tuple[Fault, ...] = (
    kill_process, kill_process, kill_worker, stop_or_continue_process, stop_or_continue_process,
    stop_or_continue_worker, stop_or_continue_worker, stores_answer_a_process_late, stores_answer_a_process_late,
    kill_coordinator, kill_coordinator, kill_coordinator, usurp, zombie_coordinator_works,
    redis_refuses_or_is_back, redis_is_full_or_not, redis_loses_a_cut, a_piece_is_damaged,
    nimbus_refuses_or_is_back, plugin_refuses_or_agrees_again, a_supervisor_stops_or_is_back,
    storm_drops_a_batch, storm_drops_a_batch,
    a_channel_is_cut, a_channel_is_slow_or_not, a_channel_is_slow_or_not, a_node_goes_or_comes_back,
)  # fmt: skip
