"""The learnt values of a view, told beside a plan or an explanation that goes by them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from leeward.core.model import ClusterView
from leeward.core.placing import present_deployment
from leeward.core.table import replicas


def learnt_by(view: ClusterView) -> dict[str, object]:
    """The values by which a plan for this view is made, for people and programs.

    `learnt`: a sentence; `learnt_age_s`: null if nothing is learnt; `learnt_values`: each value with its standard error
    (null: not known) and the samples that count.
    """
    return {
        "learnt": sentence(view),
        "learnt_age_s": None if view.origin.age_s is None else round(view.origin.age_s, 1),
        "learnt_values": [
            {"what": what, "of": of, "value": _short(value), "error": _short(error), "samples": round(samples, 1)}
            for what, of, value, error, samples in _values(view)
        ],
    }


def sentence(view: ClusterView) -> str:
    """Whether this view has values that were learnt, and how old they are."""
    age_s = view.origin.age_s
    if age_s is None:
        why = f" ({view.origin.why})" if view.origin.why else ""
        return f"nothing is learnt{why}: waits are those of M/M/1, pauses the defaults"
    known = sum(measured.curve is not None for measured in view.measured.values())
    bolts = sum(not component.source for component in view.components)
    when = f"learnt by the service, as of {age_s:.0f} s ago"
    return f"{when}: response times of {known} of {bolts} bolts; those of the others are M/M/1"


def _values(view: ClusterView) -> Iterator[tuple[str, str, float, float | None, float]]:
    """(What, of which, value, standard error, samples); response times are those at the rate of a replica now."""
    for name, measured in sorted(view.measured.items()):
        if measured.curve is not None and name in view.tables:
            rate = measured.arrival_rate / max(1, len(replicas(view.tables[name])))
            if rate * measured.curve.service_s < 1.0:
                curve = measured.curve
                yield "response_s", name, curve.response_s(rate), curve.error_s(rate), curve.samples
    for (source, target), ratio in sorted(view.selectivity.items()):
        yield "tuples_for_each", f"{source}>{target}", ratio.ratio, ratio.error, ratio.windows
    if view.rest is not None:
        yield "rest_of_response_s", view.topology, view.rest.seconds, view.rest.error_s, view.rest.samples
    hosts = {node for counts in (present_deployment(view) or {}).values() for node in counts}
    for node in view.nodes:
        if node.id in hosts and node.store.up_rate is not None:
            yield "to_datastore_bytes_per_s", node.id, node.store.up_rate, None, node.store.ups
        if node.id in hosts and node.store.down_rate is not None:
            yield "from_datastore_bytes_per_s", node.id, node.store.down_rate, None, node.store.downs
    if view.origin.handovers:
        yield "handover_wait_s", "constant", view.handover_cost.constant_s, None, view.origin.handovers
        yield "handover_wait_s", "byte", view.handover_cost.per_byte_s, None, view.origin.handovers
    if view.restarts:
        yield "restart_pause_s", "median", median(one.pause_s for one in view.restarts), None, len(view.restarts)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
