"""What is not lost costs nothing: why the pair's topologies are restored, where little or nothing is lost."""

from __future__ import annotations

import pytest

from leeward.sim import faults
from leeward.sim.pair import Pair

BLOCKS = [range(first, first + 20) for first in range(0, 80, 20)]


class Gentle(Pair):
    """A pair with faults of its own, and no long pauses: no deadline passes because nobody had a turn."""

    kinds: tuple[faults.Fault, ...]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.faults, self.pauses = self.kinds, (0.1, 0.3)

    @property
    def reasons(self) -> list[str]:
        """Why everything was restored."""
        return [str(fields["why"]) for fields in self.sink.of("reset")]


class Calm(Gentle):
    """No process and no tuple is lost; coordinators die, and Redis and Nimbus do not always answer."""

    kinds = (
        faults.kill_coordinator, faults.kill_coordinator, faults.usurp, faults.zombie_coordinator_works,
        faults.redis_refuses_or_is_back, faults.redis_is_full_or_not, faults.nimbus_refuses_or_is_back,
        faults.plugin_refuses_or_agrees_again,
    )  # fmt: skip


class Deaths(Gentle):
    """Processes die, and with them what was on its way to or from them. No other tuple or marker is lost."""

    kinds = (
        faults.kill_process, faults.kill_process, faults.kill_worker, faults.kill_coordinator, faults.usurp,
        faults.redis_refuses_or_is_back,
    )  # fmt: skip


#: Seeds of `Calm` that have failed.
CALM_REGRESSIONS = {
    8: "A process that Storm had just started elsewhere read an older record, and took itself for lost.",
}


@pytest.mark.parametrize("seeds", [*BLOCKS[:3], CALM_REGRESSIONS], ids=str)
def test_nothing_is_restored_where_nothing_is_lost(seeds):
    for seed in seeds:
        pair = Calm(seed).run()
        assert pair.reasons == [], f"seed {seed}"


#: Seeds of `Deaths` that have failed, with their story; see `test_pair.REGRESSIONS`.
REGRESSIONS = {
    3: "A lost warm task had not sent a checkpoint's marker, and the route marker waited behind it.",
    6: "A lost warm task sent no route marker: those behind it waited for one until the handover was late.",
}


@pytest.mark.parametrize("seeds", [*BLOCKS, REGRESSIONS], ids=str)
def test_a_death_is_noticed_as_one_and_no_deadline_is_waited_for(seeds):
    for seed in seeds:
        for why in Deaths(seed).run().reasons:
            noticed = why.startswith("silent: ") or "did not take part in base" in why or "started again" in why
            assert noticed, f"seed {seed}: {why}"


@pytest.mark.long
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
        "taken_over", "tasks_left_out", "tasks_returned",
    } - met  # fmt: skip
    assert not missing, f"no seed met {sorted(missing)}, but {sorted(met)}"
