"""The paths of the API, as data: routes and OpenAPI are made from one table, so each has all that the other has."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from leeward.adapters.http.answers import (
    EventAnswer,
    HistoryAnswer,
    NodesAnswer,
    PlanAnswer,
    SeriesAnswer,
    Topologies,
    TopologyAnswer,
)

#: Ids of requests, as ZooKeeper numbers them.
REQUEST = re.compile(r"r-\d{10}")
#: A figure's name: `rate`, or `COMPONENT.rate`.
Figure = Annotated[str, Field(min_length=1, max_length=200)]


class Query(BaseModel):
    """Parameters behind the `?` of a path; one that it does not name is refused."""

    model_config = ConfigDict(extra="forbid")


class SeriesQuery(Query):
    """Of the series."""

    since: float = Field(0.0, ge=0, le=1e12, allow_inf_nan=False, description="Points after this time, s since 1970.")
    figure: list[Figure] = Field(default=[], max_length=500, description="Repeat for more; without one, all.")


class HistoryQuery(Query):
    """Of the history."""

    last: int = Field(64, ge=1, le=10_000, description="Only the newest so many.")


class EventsQuery(Query):
    """Of the live events."""

    topology: str = Field("", max_length=200, description="Of this topology and of the whole service; empty: all.")
    after: int | None = Field(None, ge=0, le=2**53, description="Begin behind this id; without one, with what comes.")


@dataclass(frozen=True, slots=True)
class Path:
    """A method of a path."""

    path: str
    about: str
    answers: TypeAdapter[Any]  #: of its answer 200
    method: str = "GET"
    query: type[Query] = Query
    body: type[BaseModel] | None = None
    media: str = "application/json"
    also: Mapping[str, TypeAdapter[Any]] = field(default_factory=dict)  #: further media in which it answers 200
    statuses: tuple[int, ...] = field(default=())  #: beside 200 and those that every path has
    later: bool = False  #: it may answer 202
    acting: bool = False  #: it needs the token


Handler = Callable[[Request], Awaitable[Response]]
TOPOLOGY = "/api/topologies/{name}"

READING = (
    Path("/api/topologies", "All topologies, a line each.", TypeAdapter(Topologies)),
    Path(TOPOLOGY, "The report of a topology.", TypeAdapter(TopologyAnswer), statuses=(404,)),
    Path(f"{TOPOLOGY}/status", "The answer of leeward status.", TypeAdapter(dict[str, Any]), statuses=(404, 409, 503)),
    Path(
        f"{TOPOLOGY}/history", "Its reconfigurations.", TypeAdapter(HistoryAnswer), query=HistoryQuery, statuses=(404,)
    ),
    Path(f"{TOPOLOGY}/series", "Its time series.", TypeAdapter(SeriesAnswer), query=SeriesQuery, statuses=(404,)),
    Path(f"{TOPOLOGY}/plan", "The plan now, before, and why.", TypeAdapter(PlanAnswer), statuses=(404,)),
    Path(f"{TOPOLOGY}/nodes", "The nodes and its replicas on them.", TypeAdapter(NodesAnswer), statuses=(404,)),
)
EVENTS = Path(
    "/api/events", "Live events (SSE): id, and data, which is an EventAnswer. Last-Event-ID resumes; an event named "
    "`missed` says that some decisions are not kept any more.",
    TypeAdapter(EventAnswer), query=EventsQuery, media="text/event-stream", statuses=(503,),
)  # fmt: skip
