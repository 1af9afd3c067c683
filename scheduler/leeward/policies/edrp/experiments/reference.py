"""The paper's reference application (its Table II) as operators and streams of the model.

The paper does not print selectivities; `Ratios` names what we assume, and why, so that every figure made with
them can say so.
"""

from __future__ import annotations

from dataclasses import dataclass

from leeward.policies.edrp.problem.latency import MM1
from leeward.policies.edrp.problem.values import Operator, Stream, Weights

#: Service rate mu_i (tuples/s) and state I_S,i (bytes) of Table II, in the order of the stream.
TABLE_II = {
    "data_source": (284.0, 82.0),
    "parser": (233.0, 0.0),
    "filter_by_coordinates": (253.0, 0.0),
    "compute_route_id": (253.0, 0.0),
    "metronome": (300.0, 328.0),
    "count_by_window": (335.0, 1376.0),
    "partial_rank": (2371.0, 1536.0),
    "global_rank": (3000.0, 480.0),
}
#: Never replicated.
SINGLE = ("data_source", "metronome", "global_rank")
SOURCE, SINK = "data_source", "global_rank"
#: Weights of the objectives of Tables III and V.
WEIGHTS = {
    "baseline": Weights(r=0.5, c=0.5, d=0.0),
    "balanced": Weights(r=0.3, c=0.3, d=0.4),
    "response time": Weights(r=0.6, c=0.0, d=0.4),
    "cost": Weights(r=0.0, c=0.6, d=0.4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Rates that the paper leaves open: tuples out for each tuple in, of the operator named."""

    parser: float = 1.0
    filter_by_coordinates: float = 1.0
    compute_route_id: float = 1.0
    #: Pulses for each tuple that the metronome sees.  With 0.1 a second count_by_window pays, by latency alone, just
    #: below the source's peak of 220 tuples/s, where the paper launches it.
    metronome: float = 0.1
    #: Changes for each routed tuple.  21.2 makes a second partial_rank pay from 105 tuples/s on, which the source
    #: reaches in the seventh minute, when the paper launches it; one replica cannot keep up from 112 on.
    count_by_window: float = 21.2
    #: Changes of the top ten for each routed tuple.
    partial_rank: float = 1.0
    #: Tuples of the source to the metronome for each tuple: the ninth stream, which the variables of Table IV count and
    #: no text explains.  0: there is no such stream.
    ticks: float = 0.0


def reference_streams(rate: float, ratios: Ratios) -> tuple[Stream, ...]:
    """The application's streams when the source emits `rate` tuples/s."""
    parsed = rate * ratios.parser
    inside = parsed * ratios.filter_by_coordinates
    routed = inside * ratios.compute_route_id
    table = [
        (SOURCE, "parser", rate),
        ("parser", "filter_by_coordinates", parsed),
        ("filter_by_coordinates", "compute_route_id", inside),
        ("filter_by_coordinates", "metronome", inside),
        ("compute_route_id", "count_by_window", routed),
        ("metronome", "count_by_window", (inside + rate * ratios.ticks) * ratios.metronome),
        ("count_by_window", "partial_rank", routed * ratios.count_by_window),
        ("partial_rank", SINK, routed * ratios.partial_rank),
    ]
    if ratios.ticks:
        table.insert(1, (SOURCE, "metronome", rate * ratios.ticks))
    return tuple(Stream(source=source, target=target, rate=tps) for source, target, tps in table)


def reference_operators(rate: float, k: int, pins: dict[str, str]) -> tuple[Operator, ...]:
    """The eight operators: at most `k` replicas each but for `SINGLE`; `pins` names the node of a pinned one."""
    return tuple(
        Operator(
            id=name,
            k=1 if name in SINGLE else k,
            curve=MM1(mu=mu),
            state_bytes=state,
            source_rate=rate if name == SOURCE else 0.0,
            allowed=(pins[name],) if name in pins else None,
        )
        for name, (mu, state) in TABLE_II.items()
    )
