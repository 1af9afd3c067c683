"""A simulation's figures for people (a table) and for programmes (JSON). Pure; equal figures give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from leeward.sim.world.ledger import Event, Figures


def document_of(figures: Figures, about: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON document; `about` says what was simulated."""
    return {
        "simulation": dict(about),
        "plans": {
            "made": figures.plans, "kept": figures.kept, "errors": figures.failed,
            "refused": sum(figures.refused.values()), "refusals": dict(figures.refused),
        },
        "reconfigurations": {
            "handovers": figures.handovers, "restarts": figures.restarts, "undone": figures.undone,
        },
        "downtime_s": {
            "all": _round(figures.downtime_s), "handover_waits": _round(figures.handover_wait_s),
            "restart_stops": _round(figures.restart_stop_s), "longest": _round(figures.longest_stop_s),
        },
        "cost": {"dollars": _round(figures.cost), "per_h": _round(figures.cost / figures.hours)},
        "replicas": {"mean": _round(figures.mean_replicas), "most": figures.most_replicas},
        "response_s": {
            "mean": _round(figures.mean_response_s), "p95": _round(figures.p95_response_s),
            "longest": _round(figures.longest_response_s), "share_over_max": _round(figures.over_share),
        },
        "model": {"plans": figures.modelled, "error": _round(figures.model_error)},
        "tuples": {
            "offered": round(figures.offered), "waiting": round(figures.waiting),
            "most_waiting": round(figures.most_waiting), "lost": _round(figures.lost), "resets": figures.resets,
            "peak_per_s": _round(figures.peak),
        },
    }  # fmt: skip


def table_text(document: Mapping[str, Any]) -> str:
    """Two columns."""
    about, plans, changes = document["simulation"], document["plans"], document["reconfigurations"]
    down, response, tuples = document["downtime_s"], document["response_s"], document["tuples"]
    model = document["model"]
    off = f"{100 * model['error']:.1f} % off on average, head-room included, of {model['plans']} plans that keep"
    rows = [
        ("topology, policy, seed", f"{about['topology']}, {about['policy']}, {about['seed']}"),
        ("time", f"{about['hours']:g} h, a plan each {about['period_s']:g} s"),
        ("rate offered", f"peak {tuples['peak_per_s']:.0f} tuples/s, {tuples['offered']} tuples"),
        ("plans", f"{plans['made']}: {plans['kept']} keep, {plans['refused']} refused, "
                  f"{sum(changes.values())} carried out"),
        *((f"  refused: {why}", str(count)) for why, count in plans["refusals"].items()),
        ("reconfigurations", f"{changes['handovers']} handovers, {changes['restarts']} restarts, "
                             f"{changes['undone']} undone"),
        ("downtime", f"{down['all']:.2f} s: handovers {down['handover_waits']:.2f} s, restarts "
                     f"{down['restart_stops']:.2f} s, longest {down['longest']:.2f} s"),
        ("cost", f"{document['cost']['dollars']:.2f} $, {document['cost']['per_h']:.2f} $/h"),
        ("replicas", f"mean {document['replicas']['mean']:.2f}, most {document['replicas']['most']}"),
        ("response time", f"mean {1000 * response['mean']:.1f} ms, 95 % {1000 * response['p95']:.1f} ms, longest "
                          f"{1000 * response['longest']:.0f} ms"),
        *([("response, modelled", off)] if model["plans"] else []),
        (f"time over {1000 * about['response_max_s']:g} ms", f"{100 * response['share_over_max']:.3f} %"),
        ("tuples", f"most waiting {tuples['most_waiting']}, waiting at the end {tuples['waiting']}, "
                   f"lost {tuples['lost']:g}, resets {tuples['resets']}"),
    ]  # fmt: skip
    width = max(len(name) for name, _ in rows) + 2
    return "".join(f"{name:<{width}}{value}\n" for name, value in rows)


def events_text(events: Iterable[Event]) -> str:
    """One JSON object a line."""
    return "".join(
        json.dumps({"t": event.at_s, "action": event.action, **event.fields}, default=str) + "\n" for event in events
    )


def _round(value: float) -> float:
    return round(value, 6)
