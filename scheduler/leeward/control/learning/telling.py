"""Learnt values, told: by the event `learnt`, and in a status. Pure."""

from __future__ import annotations

from dataclasses import fields

from leeward.control.learning.learner import Agreement, Learner
from leeward.control.learning.record import LearntRecord
from leeward.core.learnt import StoreLink

_OF_AGREEMENTS = tuple(field.name for field in fields(Agreement) if field.name != "component")
_OF_LINKS = tuple(field.name for field in fields(StoreLink))


def learnt_fields(learner: Learner) -> dict[str, object]:
    """The event: model against measurement of each component, and what is known of nodes and changes.

    As `control.report.reading` reads them; figures of streams are under FROM>TO.
    """
    known, cost, (handovers, off_s) = learner.learnt({}), learner.handover_cost, learner.handovers
    return {
        "models": {
            one.component: {name: _short(getattr(one, name)) for name in _OF_AGREEMENTS} for one in learner.agreements
        },
        "stores": {
            node: {name: _short(getattr(link, name)) for name in _OF_LINKS} for node, link in known.stores.items()
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
        "rest": {name: _short(value) for name, value in (known.rest._asdict() if known.rest else {}).items()},
        "restarts": [{"started": one.started, "pause_s": _short(one.pause_s)} for one in known.restarts],
    }


def recorded(record: LearntRecord | None, why: str, now: float) -> dict[str, object]:
    """The same of a record that is not looked into, for `leeward status`."""
    if record is None:
        return {"learnt": f"nothing is learnt ({why})", "learnt_age_s": None}
    age_s = max(0.0, now - record.at)
    counts = (
        (record.curves, "response times"), (record.streams, "selectivities"), (record.stores, "nodes' links"),
        (record.handovers, "handovers"), (record.restarts, "restarts"),
    )  # fmt: skip
    known = ", ".join(f"{len(each)} {name}" for each, name in counts)
    return {"learnt": f"learnt by the service, as of {age_s:.0f} s ago: {known}", "learnt_age_s": round(age_s, 1)}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
