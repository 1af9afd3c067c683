"""`GET /metrics`: the newest reports for Prometheus, with the names and units of OpenMetrics.

Labels come from names of topologies, components and nodes, whose numbers are bounded here: beyond a bound the rest is
left out, and `leeward_left_out` says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from leeward.control.report.knowledge import Knowledge
from leeward.control.report.values import Component, Report

#: Of the service; components, and nodes with replicas, of each topology.
TOPOLOGIES, COMPONENTS, NODES = 200, 200, 200
#: Values of the label `what` of `leeward_missing`.
MISSING = ("Nimbus", "ZooKeeper", "clocks", "leader", "measurements", "server", "service", "state", "tasks")


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A figure of a report or of a component, by name; None is left out."""

    name: str
    about: str
    of: Callable[[Report, float], float | None]


@dataclass(frozen=True, slots=True)
class _ComponentGauge:
    name: str
    about: str
    of: Callable[[Component], float | None]


_OF_TOPOLOGY = (
    _Gauge("leeward_leader", "1 if this service leads the topology, else 0.", lambda r, _: float(r.role == "leader")),
    _Gauge("leeward_rate_tuples_per_second", "Tuples out of the sources.", lambda r, _: r.rate),
    _Gauge("leeward_backlog_tuples", "Tuples that wait before the source.", lambda r, _: _float(r.backlog)),
    _Gauge("leeward_state_bytes", "State of all tasks.", lambda r, _: _float(r.state_bytes)),
    _Gauge("leeward_cost_dollars_per_hour", "Cost of the replicas in force.", lambda r, _: r.cost_per_h),
    _Gauge("leeward_downtime_ratio", "Share of the time in which the stream stood.", lambda r, _: r.downtime_share),
    _Gauge("leeward_restart_pause_seconds", "Median pause of the newest restarts.", lambda r, _: r.restart_pause_s),
    _Gauge("leeward_epoch", "Number of the newest reconfiguration.", lambda r, _: float(r.epoch)),
    _Gauge("leeward_reconfiguring", "1 during a reconfiguration.", lambda r, _: float(r.current is not None)),
    _Gauge(
        "leeward_measurement_age_seconds", "Time since the newest measurement.",
        lambda r, now: None if r.measured_at is None else max(0.0, now - r.measured_at),
    ),
)  # fmt: skip
_OF_COMPONENT = (
    _ComponentGauge("leeward_component_rate_tuples_per_second", "Tuples into all replicas.", lambda c: c.rate),
    _ComponentGauge(
        "leeward_component_service_rate_tuples_per_second", "Of one busy replica.", lambda c: c.service_rate
    ),
    _ComponentGauge("leeward_component_busy_ratio", "Rate over what the replicas can do.", lambda c: c.busy),
    _ComponentGauge("leeward_component_queued_tuples", "Tuples that wait in front of it.", lambda c: _float(c.queued)),
    _ComponentGauge("leeward_component_replicas", "Tasks that own key groups.", lambda c: float(c.replicas)),
    _ComponentGauge("leeward_component_tasks", "Tasks, warm ones included.", lambda c: float(c.tasks)),
)


class Metrics:
    """A collector over what the service knows."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The metrics and their content type: OpenMetrics for a client that accepts it, else Prometheus' text."""
        try:
            encode, kind = choose_encoder(accept)
        except (TypeError, ValueError):  # it compares versions as numbers, and a client may send anything
            encode, kind = choose_encoder("")
        return encode(self._registry), kind

    def describe(self) -> Iterable[Metric]:
        """Names that the registry looks for twins of: none is registered twice."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """As prometheus_client asks for them."""
        living = [
            report for name in self._knowledge.names
            if (report := self._knowledge.report(name)) is not None and report.role != "gone"  # no rule is to fire
        ]  # fmt: skip
        reports = living[:TOPOLOGIES]
        yield from _topologies(reports, self._knowledge.now)
        yield from _components(reports)
        yield from _models(reports)
        yield _nodes(reports)
        yield from _stores(reports)
        yield from _counters(reports)
        yield _missing(reports)
        yield _last(reports)
        yield _left_out(reports, len(living))


def _topologies(reports: list[Report], now: float) -> Iterator[Metric]:
    info = InfoMetricFamily("leeward_topology", "Storm's id of a topology and its policy.", labels=["topology"])
    response = GaugeMetricFamily(
        "leeward_response_time_seconds", "Mean time from source to sink.", labels=["topology", "kind"]
    )
    for report in reports:
        info.add_metric([report.topology], {"topology_id": report.topology_id, "policy": report.policy})
        for kind, value in (("measured", report.response_s), ("modelled", report.modelled_response_s)):
            if value is not None:
                response.add_metric([report.topology, kind], value)
    yield info
    yield response
    for gauge in _OF_TOPOLOGY:
        family = GaugeMetricFamily(gauge.name, gauge.about, labels=["topology"])
        for report in reports:
            value = gauge.of(report, now)
            if value is not None:
                family.add_metric([report.topology], value)
        yield family


def _components(reports: list[Report]) -> Iterator[Metric]:
    for gauge in _OF_COMPONENT:
        family = GaugeMetricFamily(gauge.name, gauge.about, labels=["topology", "component"])
        for report in reports:
            for component in report.components[:COMPONENTS]:
                value = gauge.of(component)
                if value is not None:
                    family.add_metric([report.topology, component.id], value)
        yield family


def _models(reports: list[Report]) -> Iterator[Metric]:
    response = GaugeMetricFamily(
        "leeward_component_response_time_seconds", "Time of a tuple in a component: measured, by the learnt curve, and "
        "by M/M/1 at the same rates.", labels=["topology", "component", "kind"],
    )  # fmt: skip
    error = GaugeMetricFamily(
        "leeward_component_response_error_seconds", "Standard error of the learnt curve at the rate of now.",
        labels=["topology", "component"],
    )  # fmt: skip
    for report in reports:
        for component in report.components[:COMPONENTS]:
            if (model := component.model) is None:
                continue
            for kind, value in (("measured", model.measured_s), ("learnt", model.learnt_s), ("mm1", model.mm1_s)):
                if value is not None:
                    response.add_metric([report.topology, component.id, kind], value)
            if model.error_s is not None:
                error.add_metric([report.topology, component.id], model.error_s)
    yield from (response, error)


def _stores(reports: list[Report]) -> Iterator[Metric]:
    rate = GaugeMetricFamily(
        "leeward_store_rate_bytes_per_second", "State between a node and the DataStore, median of transfers.",
        labels=["topology", "node", "kind"],
    )  # fmt: skip
    trip = GaugeMetricFamily(
        "leeward_store_round_trip_seconds", "A small command from a node to the DataStore, median.",
        labels=["topology", "node"],
    )  # fmt: skip
    for report in reports:
        for store in report.stores[:NODES]:
            for kind, value in (("up", store.up_rate), ("down", store.down_rate)):
                if value is not None:
                    rate.add_metric([report.topology, store.node, kind], value)
            if store.trip_s is not None:
                trip.add_metric([report.topology, store.node], store.trip_s)
    yield from (rate, trip)


def _by_node(report: Report) -> dict[str, int]:
    found: dict[str, int] = {}
    for counts in report.deployment.values():
        for node, count in counts.items():
            found[node] = found.get(node, 0) + count
    return found


def _nodes(reports: list[Report]) -> Metric:
    family = GaugeMetricFamily("leeward_node_replicas", "Replicas on a node.", labels=["topology", "node"])
    for report in reports:
        for node, count in sorted(_by_node(report).items())[:NODES]:
            family.add_metric([report.topology, node], count)
    return family


def _counters(reports: list[Report]) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "leeward_reconfigurations", "Reconfigurations that are over.", labels=["topology", "kind", "ending"]
    )
    refused = CounterMetricFamily("leeward_refusals", "Plans and requests not carried out.", labels=["topology"])
    downtime = CounterMetricFamily("leeward_downtime_seconds", "Time in which the stream stood.", labels=["topology"])
    for report in reports:
        for kind, endings in sorted(report.endings.items()):
            for ending, count in sorted(endings.items()):
                ended.add_metric([report.topology, kind, ending], count)
        refused.add_metric([report.topology], report.refused)
        downtime.add_metric([report.topology], report.downtime_s)
    yield from (ended, refused, downtime)


def _missing(reports: list[Report]) -> Metric:
    family = GaugeMetricFamily(
        "leeward_missing", "1 if the service lacks this of a topology, else 0.", labels=["topology", "what"]
    )
    for report in reports:
        lacks = {one.what for one in report.missing}
        for what in MISSING:
            family.add_metric([report.topology, what], float(what in lacks))
    return family


def _last(reports: list[Report]) -> Metric:
    family = GaugeMetricFamily(
        "leeward_last_reconfiguration_phase_seconds", "Phases of the newest one that is over.",
        labels=["topology", "phase"],
    )  # fmt: skip
    for report in reports:
        for phase, seconds in (report.last.phases if report.last else {}).items():
            family.add_metric([report.topology, phase], seconds)
    return family


def _left_out(reports: list[Report], topologies: int) -> Metric:
    family = GaugeMetricFamily("leeward_left_out", "Names beyond the bounds of labels.", labels=["what"])
    family.add_metric(["topologies"], max(0, topologies - TOPOLOGIES))
    family.add_metric(["components"], sum(max(0, len(report.components) - COMPONENTS) for report in reports))
    family.add_metric(["nodes"], sum(max(0, len(_by_node(report)) - NODES) for report in reports))
    return family


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
