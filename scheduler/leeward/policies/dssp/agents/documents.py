"""The JSON that clients and a provider exchange: services, queries, rounds, results."""

from __future__ import annotations

from typing import Any

from leeward.core import fields
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Result
from leeward.policies.dssp.agents.subscriptions import Subscription, Trigger
from leeward.policies.dssp.model.area import Area


def service_from_json(name: str, body: object) -> Service:
    """Raises FieldError."""
    required = ("capability", "areas", "rate", "percent", "objective_s")
    top = fields.mapping("service", body, frozenset((*required, "rank", "weight")), required=required)
    return Service(
        name=name, capability=fields.text("capability", top["capability"]),
        areas=fields.each("areas", top["areas"], Area.from_json), rate=fields.number("rate", top["rate"]),
        percent=fields.number("percent", top["percent"]),
        objective_s=fields.number("objective_s", top["objective_s"]), rank=fields.whole("rank", top.get("rank", 0)),
        weight=fields.number("weight", top.get("weight", 1.0)),
    )  # fmt: skip


def subscription_from_json(body: object) -> Subscription:
    """Raises FieldError."""
    optional = ("areas", "rounds", "trigger")
    top = fields.mapping(
        "rounds", body, frozenset(("service", "period_s", *optional)), required=("service", "period_s")
    )  # fmt: skip
    trigger = None
    if top.get("trigger") is not None:
        bounds = fields.mapping(
            "trigger", top["trigger"], frozenset({"figure", "above", "below"}), required=("figure",)
        )  # fmt: skip
        given = {name: fields.number(f"trigger.{name}", bounds[name]) for name in ("above", "below") if name in bounds}
        trigger = Trigger(figure=bounds["figure"], **given)
    return Subscription(
        service=fields.text("service", top["service"]), period_s=fields.number("period_s", top["period_s"]),
        areas=fields.each("areas", top.get("areas", []), Area.from_json),
        rounds=fields.whole("rounds", top["rounds"]) if top.get("rounds") is not None else None, trigger=trigger,
    )  # fmt: skip


def query_from_json(body: object) -> tuple[str, tuple[Area, ...]]:
    """Service and areas, none if all of the service are meant. Raises FieldError."""
    top = fields.mapping("query", body, frozenset({"service", "areas"}), required=("service",))
    return fields.text("service", top["service"]), fields.each("areas", top.get("areas", []), Area.from_json)


def result_to_json(result: Result) -> dict[str, Any]:
    """For clients."""
    tally = result.tally
    return {
        "query": result.query, "service": result.service, "count": tally.count, "mean": tally.mean,
        "least": tally.least, "most": tally.most, "seconds": result.seconds, "answered": list(result.answered),
        "missing": dict(result.missing), "failed": result.failed, "late": result.late,
    }  # fmt: skip
