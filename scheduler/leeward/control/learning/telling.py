"""The event `learnt`: model against measurement of each component, and what is known of nodes and changes. Pure."""

from __future__ import annotations

from dataclasses import asdict

from leeward.control.learning.learner import Learner


def learnt_fields(learner: Learner) -> dict[str, object]:
    """As `control.report.reading` reads them; figures of streams are under FROM>TO."""
    known, cost, (handovers, off_s) = learner.learnt({}), learner.handover_cost, learner.handovers
    return {
        "models": {
            one.component: {name: _short(value) for name, value in asdict(one).items() if name != "component"}
            for one in learner.agreements
        },
        "stores": {
            node: {name: _short(value) for name, value in asdict(link).items()} for node, link in known.stores.items()
        },
        "selectivities": {
            f"{source}>{target}": {name: _short(value) for name, value in ratio._asdict().items()}
            for (source, target), ratio in known.selectivities.items()
        },
        "handover": {
            "constant_s": _short(cost.constant_s),
            "per_byte_s": _short(cost.per_byte_s),
            "off_s": _short(off_s),
            "handovers": handovers,
        },
        "restarts": [{"started": one.started, "pause_s": _short(one.pause_s)} for one in known.restarts],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
