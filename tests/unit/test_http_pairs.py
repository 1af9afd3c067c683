"""Everything the commands do is in the HTTP API, and the reverse: each has its partner, or a reason for having none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest
import typer
from starlette.routing import Route
from typer.core import TyperCommand, TyperGroup

from leeward.cli import _build
from leeward.dashboard.service.page import routes as page_routes
from tests.helpers.http_api import Stage

ONE, NODE = "/api/topologies/{name}", "/api/nodes/{node}"
#: Command -> method and path of the routes that do the same.
PAIRS = {
    "apply": [("POST", f"{ONE}/apply")],
    "approve": [("POST", f"{ONE}/approve")],
    "diff": [("GET", f"{ONE}/diff"), ("POST", f"{ONE}/diff")],
    "drain": [("POST", f"{NODE}/drain"), ("POST", f"{NODE}/undrain")],
    "explain": [("GET", f"{ONE}/explain")],
    "freeze": [("POST", f"{ONE}/freeze"), ("POST", f"{ONE}/thaw")],
    "history": [("GET", f"{ONE}/history")],
    "plan": [("POST", f"{ONE}/plan")],
    "reconfigure": [("POST", f"{ONE}/reconfigure")],
    "recover": [("POST", f"{ONE}/recover")],
    "rollback": [("POST", f"{ONE}/rollback")],
    "status": [("GET", f"{ONE}/status"), ("GET", f"{ONE}/nodes")],
    "top": [("GET", "/api/top"), ("GET", "/api/topologies")],
    "validate": [("POST", "/api/validate"), ("GET", "/api/settings/schema")],
}
#: Commands, or groups of them, without a route.
NOT_OVER_HTTP = {
    "agent": "is a process of a node",
    "check": "imports the user's own project before it is submitted; the service has none of it",
    "cluster": "starts and ends servers of this machine",
    "demo": "starts a cluster of this machine and shows it",
    "dssp": "starts services of another system, which have an API of their own",
    "evaluate": "simulates, without a cluster",
    "experiment": "runs an experiment of a paper on this machine",
    "fragments": "asks agents of nodes, by their addresses",
    "jar": "builds a file on this machine",
    "network": "shows and checks a file of this machine",
    "overlay": "are processes of nodes, and questions to them",
    "pareto": "solves an instance of a file, without a cluster",
    "quickstart": "writes a project on this machine",
    "reference": "computes a file of results on this machine",
    "replay": "is a process that sends recorded data",
    "serve": "is the service itself; --once is plan",
    "simulate": "simulates, without a cluster",
    "solve": "solves an instance of a file, without a cluster",
    "submit": "sends code of this machine to Nimbus; the service leads what runs",
    "tidy": "also deletes what topologies have left that no service leads; a service tidies after its own",
}
#: Routes without a command.
NOT_A_COMMAND = {
    ("GET", ONE): "the sum of status, top and history, with what this service alone remembers",
    ("GET", f"{ONE}/plan"): "the newest plan and the refusals, which serve --events writes as they are made",
    ("GET", f"{ONE}/series"): "points that the service keeps in its memory, and no server has",
    ("GET", f"{ONE}/requests/{{request}}"): "commands wait for the answer to their request themselves",
    ("GET", "/api/events"): "a live stream; serve --events writes the same decisions to a file",
    ("GET", "/metrics"): "for Prometheus",
    ("GET", "/openapi.json"): "describes the API itself",
    ("GET", "/"): "the page",
    ("GET", "/files/{name}"): "a file of the page",
}
#: Parameters of commands that say where the cluster is, how long to wait, or how to print.
COMMON = {"nimbus", "zookeeper", "redis", "cluster", "timeout", "output", "events", "topology", "help"}
#: Command -> parameter -> the field that does the same, or why there is none.
RENAMED = {
    "apply": {"file": "deployment", "config": "the service's own is in force"},
    "diff": {"file": "deployment"},
    "drain": {"node": "in the path", "undo": "the path undrain"},
    "explain": {
        "what": "in the path; an instance of a file is no business of the service", "options": "option",
        "time_limit": "limit_s", "config": "the service's own is in force", "out": "the client keeps the answer",
    },
    "freeze": {"undo": "the path thaw"},
    "plan": {"config": "the service's own is in force"},
    "reconfigure": {"config": "the service's own is in force", "options": "the service's own are in force"},
    "recover": {"from_cut": "cut", "from_start": "cut 0"},
    "rollback": {"freeze_why": "freeze"},
    "status": {"wait": "the client asks again"},
    "top": {
        "config": "the service's own is in force", "options": "the service's own are in force",
        "interval": "the client asks again", "once": "the only way",
    },
    "validate": {"file": "settings", "schema": "the path settings/schema"},
}  # fmt: skip


@cache
def commands() -> dict[str, TyperCommand | TyperGroup]:
    group = typer.main.get_command(_build())
    assert isinstance(group, TyperGroup)
    return dict(group.commands)


@cache
def stage() -> Stage:
    return Stage()


def served(tmp_path) -> Iterator[tuple[str, str]]:
    """Method and path of every route of the application, the page's included."""
    for route in stage().application(more=page_routes(tmp_path)).routes:
        assert isinstance(route, Route)
        for method in sorted(route.methods - {"HEAD"}):
            yield method, route.path


def test_every_command_has_its_route_or_a_reason():
    assert commands().keys() == PAIRS.keys() | NOT_OVER_HTTP.keys()
    assert not PAIRS.keys() & NOT_OVER_HTTP.keys()


def test_every_route_has_its_command_or_a_reason(tmp_path):
    paired = {route for routes in PAIRS.values() for route in routes}
    assert set(served(tmp_path)) == paired | NOT_A_COMMAND.keys()
    assert not paired & NOT_A_COMMAND.keys()


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_every_such_command_prints_for_programs_and_shows_an_example(name):
    command = commands()[name]
    assert "--output" in {option for one in command.params for option in one.opts}
    assert f"Example: leeward {name} " in f"{command.help} {command.epilog}"


def fields(route: tuple[str, str]) -> set[str]:
    """Parameters and fields of the body, by the published document."""
    with stage().client() as client:
        document = client.get("/openapi.json").json()
    operation = document["paths"][route[1]][route[0].lower()]
    found = {parameter["name"] for parameter in operation["parameters"]}
    if "requestBody" in operation:
        (media,) = operation["requestBody"]["content"].values()
        found |= document["components"]["schemas"][media["schema"]["$ref"].rpartition("/")[2]]["properties"].keys()
    return found


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_every_parameter_of_a_command_has_its_field_or_a_reason(name):
    command = commands()[name]
    given = {parameter.name for parameter in command.params} - COMMON
    renamed = RENAMED.get(name, {})
    has = set().union(*(fields(route) for route in PAIRS[name]))
    assert given - renamed.keys() <= has, "name the field that does the same, or why there is none"
    assert renamed.keys() <= given, "the command has no such parameter"
    named = {word for word in renamed.values() if re.fullmatch(r"\w+", word)}
    assert named <= has, "the route has no such field"
