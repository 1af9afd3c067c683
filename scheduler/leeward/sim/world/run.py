"""One simulation: a policy, through the real service, for so many hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from leeward.control.loop import Inline
from leeward.control.service import Service
from leeward.core.collecting import seldom_collected
from leeward.core.policy import Policy
from leeward.core.settings import Settings
from leeward.sim.world.cluster import SimulatedCluster
from leeward.sim.world.description import WorldFile
from leeward.sim.world.ledger import Event, Figures, Ledger, figures_of
from leeward.sim.world.rates import RateTrace

#: Fewer tuples than this are rounding. They are counted as sums of shares.
ROUNDING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a simulation."""

    figures: Figures
    events: tuple[Event, ...]
    wall_s: float  #: real time that it took
    solving_s: float  #: of it: solving, as the policy says
    slowest_s: float  #: the slowest plan


def simulate(
    world: WorldFile, trace: RateTrace, policy: Policy | None, settings: Settings, *, hours: float,
    progress: Callable[[float], None] | None = None,
) -> Outcome:  # fmt: skip
    """Serve the world's topology for `hours` of `trace` with `policy`.

    `settings.seed` decides about arrivals and about the policy's random numbers. `progress` is called with the seconds
    that have passed in the simulation.
    """
    began = time.monotonic()
    ledger = Ledger()
    cluster = SimulatedCluster(world, trace, settings, hours=hours, sink=ledger)
    ledger.clock = cluster.clock
    service = Service(topology=world.name, ports=cluster.ports(), settings=settings, policy=policy, executor=Inline())
    cluster.coordinator = lambda: service.term.coordinator if service.term is not None else None
    if progress is not None:
        cluster.progress = progress
    with seldom_collected():
        service.run(cluster.stop)
    lost = cluster.flows.lost
    figures = figures_of(
        ledger, cluster.samples, replica_cost=settings.replica_cost, response_max_s=world.response_max_s,
        lost=lost if abs(lost) > ROUNDING else 0.0, resets=len(cluster.losses), window_s=settings.window_s,
    )  # fmt: skip
    return Outcome(
        figures=figures,
        events=tuple(ledger.events),
        wall_s=time.monotonic() - began,
        solving_s=ledger.solving_s,
        slowest_s=ledger.slowest_s,
    )
