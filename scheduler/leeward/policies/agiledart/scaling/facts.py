"""Load of the components of a view: busy shares, upstream components, the backlog at the sources. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from leeward.core.model import ClusterView, Component, Measured
from leeward.core.table import replicas
from leeward.policies.agiledart.scaling.bound import Upstream


def busy(view: ClusterView, name: str) -> float | None:
    """Share of the time that a component's replicas are busy, R/(x mu); None: its service rate is not measured yet."""
    measured = view.measured.get(name, Measured())
    if not measured.service_rate:
        return None
    return measured.arrival_rate / (len(replicas(view.tables[name])) * measured.service_rate)


class Shares:
    """Busy shares of the components of one view, each computed once."""

    def __init__(self, view: ClusterView) -> None:
        self.busy = {component.id: busy(view, component.id) for component in view.components}
        self._targets: dict[str, list[str]] = {component.id: [] for component in view.components}
        for source, target in view.streams:
            self._targets.setdefault(source, []).append(target)

    def busiest(self, name: str) -> float | None:
        """Of the component and all behind it; None if one is not measured."""
        behind, left = {name}, [name]
        while left:
            new = [target for target in self._targets[left.pop()] if target not in behind]
            behind.update(new)
            left += new
        shares = [self.busy[one] for one in sorted(behind)]
        return None if None in shares else max(share for share in shares if share is not None)


def upstream(
    view: ClusterView, component: Component, queued_before: Mapping[str, int], shares: Shares | None = None
) -> list[Upstream]:
    """The components that send to this one. Sent rates are known apart only of sources with one stream.

    `queued_before`: tuples that waited in each component in the view before this one; `shares`: of this view.
    """
    found, shares = [], shares or Shares(view)
    for source, target in view.streams:
        if target != component.id:
            continue
        measured, arrives = view.measured.get(source, Measured()), view.stream_rate.get((source, target))
        apart = view.component(source).source and sum(one == source for one, _ in view.streams) == 1
        found.append(
            Upstream(
                busy=shares.busiest(source), queued=measured.queued, rate=measured.arrival_rate,
                queued_before=queued_before.get(source), received=arrives or 0.0,
                sent=measured.arrival_rate if apart and arrives is not None else None,
            )
        )  # fmt: skip
    return found


def from_sources(view: ClusterView, arriving: float) -> float:
    """Tuples of a component to which `arriving` tuples/s come that the backlog at the sources holds, at these rates."""
    sources = [view.measured.get(c.id, Measured()) for c in view.components if c.source]
    emitted, backlog = sum(one.arrival_rate for one in sources), sum(one.queued for one in sources)
    return backlog * arriving / emitted if emitted > 0 else 0.0
