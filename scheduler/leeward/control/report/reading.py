"""Reads the fields of events: one that is absent, absurd or of another type gives None or nothing. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leeward.control.report.values import (
    Change,
    ComponentSeen,
    HandoverSeen,
    ModelSeen,
    NodeSeen,
    Places,
    RestSeen,
    SelectivitySeen,
    StoreSeen,
)

Fields = Mapping[str, Any]


def number(value: object) -> float | None:
    """A finite number that is not negative; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def signed(value: object) -> float | None:
    """A finite number; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def whole(value: object) -> int | None:
    """A finite number that is not negative, without its fraction; else None."""
    if type(value) is int:  # nearly always, and a large cluster has thousands
        return value if value >= 0 else None
    found = number(value)
    return None if found is None else int(found)


def text(value: object) -> str:
    """As text; None gives an empty one."""
    return "" if value is None else str(value)


def numbers(value: object) -> dict[str, float]:
    """Name -> number, without what is none."""
    if not isinstance(value, Mapping):
        return {}
    read = {str(name): number(each) for name, each in value.items()}
    return {name: each for name, each in read.items() if each is not None}


def counts(value: object) -> dict[str, int]:
    """Name -> whole number."""
    return {name: int(each) for name, each in numbers(value).items()}


def places(value: object) -> Places:
    """Component -> node -> replicas."""
    return {str(name): counts(each) for name, each in value.items()} if isinstance(value, Mapping) else {}


def changes(value: object) -> tuple[Change, ...]:
    """The changes of a plan."""
    return tuple(
        Change(
            component=text(each.get("component")), kind=text(each.get("kind")),
            before=counts(each.get("before")), after=counts(each.get("after")),
        )
        for each in _records(value)
    )  # fmt: skip


def components(value: object) -> tuple[ComponentSeen, ...]:
    """The components of `cluster_seen`."""
    return tuple(
        ComponentSeen(
            id=text(each.get("id")), tasks=whole(each.get("tasks")) or 0,
            max_replicas=whole(each.get("max_replicas")) or 0, source=each.get("source") is True,
            stateful=each.get("stateful") is True, pinned=tuple(map(str, each.get("pinned") or ())),
        )
        for each in _records(value)
    )  # fmt: skip


def nodes(value: object) -> tuple[NodeSeen, ...]:
    """The nodes of `cluster_seen`."""
    return tuple(
        NodeSeen(
            id=text(each.get("id")), slots=whole(each.get("slots")) or 0, capacity=whole(each.get("capacity")) or 0,
            draining=each.get("draining") is True,
        )
        for each in _records(value)
    )  # fmt: skip


def streams(value: object) -> tuple[tuple[str, str], ...]:
    """Pairs of (from, to)."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple((str(pair[0]), str(pair[1])) for pair in value if isinstance(pair, list | tuple) and len(pair) == 2)


def models(value: object) -> dict[str, ModelSeen]:
    """Component -> its model beside the measurement; one without a measured time is left out."""
    found = {}
    for name, each in _named(value):
        measured, mm1 = number(each.get("measured_s")), number(each.get("mm1_s"))
        if measured is not None and mm1 is not None:
            found[name] = ModelSeen(
                measured_s=measured, mm1_s=mm1, learnt_s=number(each.get("learnt_s")),
                error_s=number(each.get("error_s")),
                **{key: number(each.get(key)) or 0.0 for key in ("utilisation", "samples", "low", "high")},
            )  # fmt: skip
    return found


def stores(value: object) -> tuple[StoreSeen, ...]:
    """By node."""
    return tuple(
        StoreSeen(
            node=name, up_rate=number(each.get("up_rate")), down_rate=number(each.get("down_rate")),
            trip_s=number(each.get("trip_s")), ups=whole(each.get("ups")) or 0, downs=whole(each.get("downs")) or 0,
        )
        for name, each in _named(value)
    )  # fmt: skip


def selectivities(value: object) -> tuple[SelectivitySeen, ...]:
    """Of streams, whose names are FROM>TO."""
    return tuple(
        SelectivitySeen(
            source=name.partition(">")[0], target=name.partition(">")[2], ratio=number(each.get("ratio")) or 0.0,
            error=number(each.get("error")) or 0.0, windows=number(each.get("windows")) or 0.0,
        )
        for name, each in _named(value)
    )  # fmt: skip


def rest(value: object) -> RestSeen | None:
    """Of the response time."""
    for each in _records([value]):
        seconds, error_s, samples = (
            signed(each.get("seconds")),
            number(each.get("error_s")),
            number(each.get("samples")),
        )
        if seconds is not None and error_s is not None and samples is not None:
            return RestSeen(seconds=seconds, error_s=error_s, samples=samples)
    return None


def handover(value: object) -> HandoverSeen | None:
    """The price of handovers."""
    for each in _records([value]):
        constant_s, per_byte_s = number(each.get("constant_s")), number(each.get("per_byte_s"))
        if constant_s is not None and per_byte_s is not None:
            return HandoverSeen(
                constant_s=constant_s, per_byte_s=per_byte_s, off_s=number(each.get("off_s")),
                handovers=whole(each.get("handovers")) or 0,
            )  # fmt: skip
    return None


def pauses(value: object) -> list[float]:
    """Of restarts."""
    read = [number(each.get("pause_s")) for each in _records(value)]
    return [pause for pause in read if pause is not None]


def _named(value: object) -> list[tuple[str, Mapping[str, Any]]]:
    items = value.items() if isinstance(value, Mapping) else ()
    return sorted((str(name), each) for name, each in items if isinstance(each, Mapping))


def _records(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
