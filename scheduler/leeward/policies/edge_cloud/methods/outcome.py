"""The two outcomes of an arrival, which every method gives."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.instance import check_places


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The dataflow runs: the resource of each query."""

    placement: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The dataflow does not run, as a query fits nowhere; nothing of it is on the board."""

    query: int
    reason: str


def hopeless(fabric: Fabric, dataflow: Dataflow) -> str | None:
    """The reason why a dataflow could not run even if it had all resources to itself; None if it could."""
    try:
        check_places(fabric, dataflow)
    except FieldError as error:
        return str(error)
    return None
