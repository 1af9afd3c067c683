"""The paths of questions that compute (`studies.py`): plan, difference, explanation, check of settings, top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from leeward.adapters.http.access import same_site
from leeward.adapters.http.acts import Replicas
from leeward.adapters.http.calls import Calls
from leeward.adapters.http.given import body_of, query_of, said
from leeward.adapters.http.paths import TOPOLOGY, Handler, Path, Query
from leeward.adapters.http.problems import Problem, Trouble, shown
from leeward.adapters.http.studies import Studies

#: Questions at a time that look or compute; others wait.
CALLS = 4
#: Beside the limit of an explanation, for the start of its process, s.
START_S = 30.0
#: One setting, as the commands' `-o` has it.
Option = Annotated[str, Field(min_length=1, max_length=500)]
Options = Annotated[
    list[Option],
    Field(max_length=100, description="Settings over those in force, as KEY=VALUE; none that names a file or server."),
]
DOCUMENT = TypeAdapter(dict[str, Any])
TEXT = "text/plain"


class Asked(BaseModel):
    """Of a question; a field that it does not name is refused."""

    model_config = ConfigDict(extra="forbid")


class DryRun(Asked):
    """The plan that the policy would make now; nothing is carried out. As leeward plan."""

    options: Options = Field(default=[])
    limit_s: float = Field(60.0, ge=1, le=120, description="Seconds of computing; then 409.")


class Wanted(Asked):
    """The present deployment against a document's. As leeward diff --file."""

    topology: str = Field("", max_length=200, description="That of the path, if it is given.")
    deployment: Replicas


class Document(Asked):
    """Check a document of settings; nothing is started. As leeward validate."""

    settings: dict[str, Any] = Field(default={}, description="As a settings file has them.")
    options: Options = Field(default=[])


class ExplainQuery(Query):
    """Of the explanation."""

    option: list[Option] = Field(
        default=[], max_length=100, description="A setting over those in force, as KEY=VALUE; repeat for more."
    )
    method: str = Field("auto", max_length=30, description="How to solve it, as for leeward solve.")
    limit_s: float = Field(20.0, ge=1, le=60, description="Seconds for everything; unanswered questions are marked.")
    seed: int = Field(0, ge=0, lt=2**31, description="Of the solver.")
    output: Literal["json", "text"] = Field("json", description="Values, or words for people.")
    width: int = Field(120, ge=40, le=200, description="Of the words: characters of a line.")


_WAITS = (400, 403, 404, 409, 503)
PLAN = Path(f"{TOPOLOGY}/plan", "Make a plan without carrying it out.", DOCUMENT, "POST", body=DryRun, statuses=_WAITS)
DIFF = Path(
    f"{TOPOLOGY}/diff", "The present deployment against the plan that waits.", DOCUMENT, statuses=(404, 409, 503)
)
COMPARE = Path(
    f"{TOPOLOGY}/diff", "The present deployment against a document's.", DOCUMENT, "POST", body=Wanted,
    statuses=(404, 409, 503),
)  # fmt: skip
EXPLAIN = Path(
    f"{TOPOLOGY}/explain", "Why the best deployment is what it is, and what any other would cost.", DOCUMENT,
    query=ExplainQuery, also={TEXT: TypeAdapter(str)}, statuses=_WAITS,
)  # fmt: skip
TOP = Path("/api/top", "All topologies that are served here, as leeward top has them.", DOCUMENT, statuses=(409, 503))
VALIDATE = Path(
    "/api/validate", "Check a document of settings.", DOCUMENT, "POST", body=Document, statuses=(403, 409, 503)
)
SCHEMA = Path("/api/settings/schema", "The form of a document of settings.", DOCUMENT, statuses=(403, 409, 503))


class Asking:
    """The handlers. `topology`: the name in a path, or it raises Trouble (404)."""

    def __init__(self, studies: Studies, topology: Callable[[Request], str]) -> None:
        self._studies, self._topology = studies, topology
        self.call = Calls(CALLS)

    def paths(self) -> Sequence[tuple[Path, Handler]]:
        """Every path with its handler."""
        return (
            (PLAN, self._plan), (DIFF, self._diff), (COMPARE, self._compare), (EXPLAIN, self._explain),
            (TOP, self._top), (VALIDATE, self._validate), (SCHEMA, self._schema),
        )  # fmt: skip

    async def preview(self, topology: str, wanted: Any, *, force: bool) -> dict[str, object]:
        """How a deployment by hand would be carried out."""
        return await self.call(lambda: self._studies.preview(topology, wanted, force=force))

    async def _plan(self, request: Request) -> Response:
        same_site(request)
        name, _ = self._topology(request), query_of(request, PLAN.query)
        body = await body_of(request, DryRun)
        return said(PLAN, await self.call(lambda: self._studies.plan(name, body.options, body.limit_s)))

    async def _diff(self, request: Request) -> Response:
        name, _ = self._topology(request), query_of(request, DIFF.query)
        return said(DIFF, await self.call(lambda: self._studies.diff(name, None)))

    async def _compare(self, request: Request) -> Response:
        name, _ = self._topology(request), query_of(request, COMPARE.query)
        body = await body_of(request, Wanted)
        check_named(body.topology, name)
        return said(COMPARE, await self.call(lambda: self._studies.diff(name, body.deployment)))

    async def _explain(self, request: Request) -> Response:
        same_site(request)
        name, query = self._topology(request), query_of(request, ExplainQuery)
        asked = {"method": query.method, "time_limit_s": query.limit_s, "seed": query.seed}
        if query.output == "text":
            asked["width"] = query.width
        found = await self.call(lambda: self._studies.explain(name, query.option, query.limit_s + START_S, asked))
        return PlainTextResponse(found) if isinstance(found, str) else said(EXPLAIN, found)

    async def _top(self, request: Request) -> Response:
        query_of(request, TOP.query)
        return said(TOP, await self.call(self._studies.top))

    async def _validate(self, request: Request) -> Response:
        same_site(request)
        query_of(request, VALIDATE.query)
        body = await body_of(request, Document)
        return said(VALIDATE, await self.call(lambda: self._studies.check(body.settings, body.options)))

    async def _schema(self, request: Request) -> Response:
        same_site(request)
        query_of(request, SCHEMA.query)
        return said(SCHEMA, await self.call(self._studies.schema))


def check_named(named: str, topology: str) -> None:
    """Raises Trouble (422) for a document about another topology than that of the path."""
    if named not in ("", topology):
        problem = Problem(
            "the document is about another topology than the path.", "Name the same topology, or leave it out.",
            "topology", shown(named),
        )  # fmt: skip
        raise Trouble(422, problem)
