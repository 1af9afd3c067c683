"""What is not lost costs nothing: why the pair's topologies are restored, where little or nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leeward.sim.pair import Pair

BLOCK = 20


class Gentle(Pair):
    """A pair with faults of its own, and no long pauses: no deadline passes because nobody had a turn."""

    faults: tuple[Callable[[Pair], None], ...]

    def _disturb(self) -> None:
        fault = self.rng.choice(self.faults)
        self.story.append(fault.__name__.strip("_").replace("_", " "))
        fault(self)

    def _time(self) -> None:
        self.clock.time += self.rng.choice((0.1, 0.3))

    @property
    def reasons(self) -> list[str]:
        """Why everything was restored."""
        return [str(fields["why"]) for fields in self.sink.of("reset")]


class Calm(Gentle):
    """No process and no tuple is lost; coordinators die, and Redis and Nimbus do not always answer."""

    faults = (
        Pair._kill_coordinator, Pair._kill_coordinator, Pair._usurp, Pair._zombie_coordinator_works,
        Pair._redis_refuses_or_is_back, Pair._redis_is_full_or_not, Pair._nimbus_refuses_or_is_back,
    )  # fmt: skip


class Deaths(Gentle):
    """Processes die, and with them what was on its way to or from them. No other tuple or marker is lost."""

    faults = (
        Pair._kill_process, Pair._kill_process, Pair._kill_worker, Pair._kill_coordinator, Pair._usurp,
        Pair._redis_refuses_or_is_back,
    )  # fmt: skip


@pytest.mark.parametrize("first", range(0, 3 * BLOCK, BLOCK))
def test_nothing_is_restored_where_nothing_is_lost(first):
    for seed in range(first, first + BLOCK):
        pair = Calm(seed).run()
        assert pair.reasons == [], f"seed {seed}"


#: Seeds of `Deaths` that have failed, with their story; see `test_pair.REGRESSIONS`.
REGRESSIONS = {
    10: "A lost warm task sent no route marker: those behind it waited for one until the handover was late.",
    20: "The same, in front of a stateless bolt.",
    74: "The same for a checkpoint's marker, behind which the route marker came.",
    36: "A route marker of an earlier base brought a task back: the channels of a task behind it disagreed.",
}


@pytest.mark.parametrize("seeds", [*(range(n, n + BLOCK) for n in range(0, 4 * BLOCK, BLOCK)), REGRESSIONS], ids=str)
def test_a_death_is_noticed_as_one_and_no_deadline_is_waited_for(seeds):
    for seed in seeds:
        for why in Deaths(seed).run().reasons:
            noticed = why.startswith("silent: ") or "did not take part in base" in why or "started again" in why
            assert noticed, f"seed {seed}: {why}"


def test_seeds_meet_all_that_a_coordinator_does():
    """Else the tests above, and those of `Pair`, would show little."""
    met: set[str] = set()
    for pair in (kind(seed).run() for kind in (Calm, Deaths, Pair) for seed in range(30)):
        met.update(action for action, _ in pair.sink.events)
        for end in pair.sink.of("reconfiguration_ended"):
            met.add(f"{end['kind']} {str(end['result']).split(':')[0]}")
    missing = {
        "checkpoint_committed", "checkpoint_failed", "fence_failed", "handover aborted", "handover done",
        "handover reset", "handover_step", "rejoin_ended", "reset reset", "restart aborted", "restart done",
        "restore_failed", "taken_over", "tasks_left_out", "tasks_returned",
    } - met  # fmt: skip
    assert not missing, f"no seed met {sorted(missing)}, but {sorted(met)}"
