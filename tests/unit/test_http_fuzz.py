"""The API fuzzed from its own OpenAPI: no 500, answers as described, and nobody acts without the token."""

from __future__ import annotations

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from tests.helpers.http_api import ACTING, Working

pytestmark = pytest.mark.timeout(600)  # the first explanation on a machine compiles the solver
#: Live streams do not end by themselves; `tests/contract/test_http_served.py` has them.
ENDLESS = "/api/events"
NAMES = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
)  # fmt: skip
checks.load_all_checks()
CHECKS = checks.CHECKS.get_by_names(NAMES)
STAGE = Working()
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", STAGE.application(), headers={"Host": "127.0.0.1"})
API = SCHEMA.exclude(path=ENDLESS)
OFTEN = settings(max_examples=40, suppress_health_check=list(HealthCheck), derandomize=True)


#: Paths that need the token.
ACTS = "|".join(
    re.escape(path) + "$"
    for path, methods in SCHEMA.raw_schema["paths"].items() if "security" in methods.get("post", {})
)  # fmt: skip


#: That are there; a name that is drawn hardly ever is.
REAL = {"name": "taxi", "node": "n1", "request": "r-0000000000"}


def ask(case, headers):
    """The request in memory as it was drawn, and for what there is; the answers, checked."""
    found = []
    for names in (dict(case.path_parameters or {}), {name: REAL[name] for name in case.path_parameters or {}}):
        case.path_parameters = names
        answer = case.call(headers={"Host": "127.0.0.1", **headers})
        case.validate_response(answer, checks=CHECKS)
        found.append(answer)
    return found


@API.parametrize()
@OFTEN
def test_with_the_token_every_question_is_answered_as_described(case):
    ask(case, ACTING)


@API.include(path_regex=ACTS).parametrize()
@OFTEN
def test_without_the_token_nothing_is_done(case):
    STAGE.world.requests.clear()
    STAGE.world.draining.clear()
    assert {answer.status_code for answer in ask(case, {"Authorization": "Bearer no"})} <= {
        401,
        405,
    }  # it asks by other methods, too
    assert STAGE.world.requests == {} and STAGE.world.draining == set()


@pytest.mark.parametrize(
    "path",
    ["/api/events", "/api/nodes/{node}/drain", "/api/top", "/api/validate", "/api/topologies/{name}/explain",
     "/api/topologies/{name}/diff", "/api/topologies/{name}/apply"],
)  # fmt: skip
def test_the_paths_that_are_fuzzed_are_there(path):
    assert path in SCHEMA.raw_schema["paths"]
