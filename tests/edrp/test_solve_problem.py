"""Reading problems: what is refused, with which field, and what survives a round trip."""

from __future__ import annotations

import copy
import json
import math

import pytest

from leeward.core.fields import FieldError
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json, read_problem
from leeward.policies.edrp.problem.latency import MM1, Table
from tests.helpers.solve_builders import chain_document, instance_document

NAMES = ("a-", "b-", "c-", "d-", "e-", "f-", "g-", "h-")


def changed(path: str, value: object) -> dict:
    """The chain with one entry replaced; a path such as `operators.1.mu`.  `...` deletes it."""
    document = chain_document()
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at = document
    for step in way:
        at = at[step]
    if value is ...:
        del at[last]
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value
    return document


LIVE = {"constant": 0.02, "per_byte": 1e-9}


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        ("operatos", [], "the document.operatos", "unknown key"),
        ("nodes", ..., "the document.nodes", "missing"),
        ("weights", ..., "weights", "missing"),
        ("nodes", {}, "nodes", "must be a list"),
        ("nodes", [], "nodes", "empty"),
        ("nodes.1.id", "n0", "nodes", "used 2 times"),
        ("nodes.1.id", 7, "nodes[1].id", "must be text"),
        ("nodes.1.res", "2", "nodes[1].res", "must be a number"),
        ("nodes.1.res", True, "nodes[1].res", "must be a number"),
        ("nodes.1.res", -1, "nodes[1].res", "0 or more"),
        ("nodes.1.speedup", 0, "nodes[1].speedup", "greater than 0"),
        ("nodes.1.r_up", 0, "nodes[1].r_up", "greater than 0"),
        ("nodes.1.speed", 1, "nodes[1].speed", "unknown key"),
        ("delay.1.2", math.nan, "delay[1][2]", "finite"),
        ("delay.1.2", -0.01, "delay[1][2]", "0 or more"),
        ("delay.1.2", math.inf, "delay[1][2]", "finite"),
        ("delay.1.2", None, "delay[1][2]", "must be a number"),
        ("delay.1.1", 0.5, "delay[1][1]", "itself"),
        ("delay", [[0.0]], "delay", "3 nodes"),
        ("delay.2", [0.0, 0.0], "delay[2]", "3 nodes"),
        ("link_cost", [[0.0]], "link_cost", "3 nodes"),
        ("link_cost", math.nan, "link_cost", "finite"),
        ("operators", [], "operators", "empty"),
        ("operators.1.id", "source", "operators", "used 2 times"),
        ("operators.1.k", 0, "operators[1].k", "1 or more"),
        ("operators.1.k", 1.5, "operators[1].k", "whole number"),
        ("operators.1.mu", math.nan, "operators[1].mu", "finite"),
        ("operators.1.mu", -3, "operators[1].mu", "greater than 0"),
        ("operators.1.mu", 10**400, "operators[1].mu", "finite"),
        ("operators.1.mu", ..., "operators[1]", "one of mu, queue, latency"),
        ("operators.1.latency", [1, 1], "operators[1]", "one of mu, queue, latency"),
        ("operators.1.queue", {"mu": 1, "rest": 1, "growth": 1}, "operators[1]", "one of mu, queue, latency"),
        ("operators.1.state", -1, "operators[1].state", "0 or more"),
        ("operators.1.colour", "red", "operators[1].colour", "unknown key"),
        ("operators.1.allowed", ["n9"], "operators[1].allowed[0]", "no such node"),
        ("operators.1.allowed", [], "operators[1].allowed", "no node"),
        ("operators.1.source_rate", 5, "operators[1].source_rate", "not a source"),
        ("operators.0.source_rate", 0, "operators[0].source_rate", "nobody feeds"),
        ("operators.3", {"id": "lost", "k": 1, "mu": 1}, "operators[3].source_rate", "nobody feeds"),
        ("streams.1.to", "nowhere", "streams[1].to", "no such operator"),
        ("streams.1.from", "nowhere", "streams[1].from", "no such operator"),
        ("streams.1.rate", -1, "streams[1].rate", "0 or more"),
        ("streams.1.rate", ..., "streams[1].rate", "missing"),
        ("streams.2", {"from": "source", "to": "work", "rate": 1}, "streams[2]", "second stream"),
        ("streams.2", {"from": "sink", "to": "work", "rate": 1}, "streams", "cycle"),
        ("streams.2", {"from": "work", "to": "work", "rate": 1}, "streams", "cycle"),
        ("weights.r", 0.6, "weights", "sum to 1"),
        ("weights.r", -0.5, "weights.r", "0 or more"),
        ("weights.x", 0, "weights.x", "unknown key"),
        ("bounds.r", 0, "bounds.r", "greater than 0"),
        ("bounds.c", math.nan, "bounds.c", "finite"),
        ("downtime_model", "hope", "downtime_model", "not a downtime model"),
        ("downtime_model", "live", "live", "needs it"),
        ("live", {"constant": 1}, "live.per_byte", "missing"),
        ("live", LIVE | {"tasks": {"wrk": {"n0": 1}}}, "live.tasks.wrk", "no such operator"),
        ("live", LIVE | {"tasks": {"work": {"n7": 1}}}, "live.tasks.work.n7", "no such node"),
        ("live", LIVE | {"tasks": {"work": {"n0": -1}}}, "live.tasks.work.n0", "negative"),
        ("live", LIVE | {"tasks": {"work": {"n0": 1.5}}}, "live.tasks.work.n0", "whole number"),
        ("t_syn", -1, "t_syn", "0 or more"),
        ("name", 3, "name", "must be text"),
        ("current", {"source": {"n0": 1}}, "current", "no present deployment"),
        ("current", {"sorce": {"n0": 1}}, "current.sorce", "no such operator"),
        ("current", {"source": {"n7": 1}}, "current.source.n7", "no such node"),
        ("current", {"source": {"n0": 0}}, "current.source.n0", "1 or more"),
        ("current", {"source": {}}, "current.source", "no replica"),
        ("operators.1.res", 3, "operators[1].res", "no node"),
    ],
)
def test_a_wrong_field_is_named(path, value, field, reason):
    with pytest.raises(FieldError) as caught:
        problem_from_json(changed(path, value))
    assert caught.value.field == field
    assert reason in caught.value.reason
    assert caught.value.remedy
    assert str(caught.value).startswith(f"{field} = ")


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_only_an_object_is_a_problem(document):
    with pytest.raises(FieldError, match="must be an object"):
        problem_from_json(document)


def test_capacity_must_hold_one_replica_of_each():
    document = chain_document(nodes=1)
    with pytest.raises(FieldError, match=r"source, work, sink needs 3 units on all nodes") as caught:
        problem_from_json(document)
    assert caught.value.remedy.startswith("Add 1 units")


def test_capacity_counts_what_is_confined_to_a_few_nodes():
    document = chain_document(nodes=3)
    document["operators"][0]["allowed"] = ["n1"]
    document["operators"][1]["allowed"] = ["n1", "n0"]
    document["operators"][2]["allowed"] = ["n1"]
    document["nodes"][0]["res"] = 0.5
    with pytest.raises(FieldError, match=r"source, work, sink needs 3 units on n0, n1"):
        problem_from_json(document)


def test_a_table_is_as_long_as_k_and_does_not_increase():
    document = changed("operators.1.mu", ...)
    document["operators"][1]["latency"] = [0.1]
    with pytest.raises(FieldError, match="1 values for k = 2"):
        problem_from_json(document)
    document["operators"][1]["latency"] = [0.1, 0.2]
    with pytest.raises(FieldError, match="grows with the rate"):
        problem_from_json(document)
    document["operators"][1]["latency"] = [None, 0.2]
    assert problem_from_json(document).operators[1].curve == Table(values_s=(math.inf, 0.2))


def test_defaults_are_those_of_the_format():
    problem = problem_from_json(chain_document())
    node, work = problem.nodes[0], problem.operators[1]
    assert (node.res, node.speedup, node.spawn_s, node.store_up_s, node.store_down_s) == (
        2,
        1,
        0.5,
        0.005,
        0.005,
    )
    assert (node.store_up_rate, node.store_down_rate) == (12.5e6, 12.5e6)
    assert (node.swap_write_rate, node.swap_read_rate) == (100e6, 100e6)
    assert (work.cost, work.res, work.code_bytes, work.allowed) == (1, 1, 300_000, None)
    assert (problem.sync_s, problem.downtime_model, problem.link_cost, problem.current) == (
        0.25,
        "generic",
        0,
        None,
    )
    assert problem.load_tps == (100, 100, 100)
    assert problem.topological_order == (0, 1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_of_the_stored_instances(name):
    problem = problem_from_json(instance_document(name))
    assert problem_from_json(json.loads(json.dumps(problem_to_json(problem), allow_nan=False))) == problem


def test_round_trip_keeps_tables_matrices_and_live():
    document = chain_document()
    del document["operators"][1]["mu"]
    document["operators"][1]["latency"] = [None, 0.25]
    document["link_cost"] = [[0.0, 1.5, 2.0], [1.0, 0.0, 2.0], [1.0, 1.0, 0.0]]
    document |= {"downtime_model": "live", "live": LIVE | {"tasks": {"work": {"n0": 2, "n1": 0}}}}
    problem = problem_from_json(document)
    again = problem_to_json(problem)
    assert again["operators"][1]["latency"] == [None, 0.25]
    assert again["link_cost"] == document["link_cost"]
    assert problem_from_json(copy.deepcopy(again)) == problem


def test_an_unstable_queue_is_infinite():
    assert MM1(mu=10).response_s(20, 2) == math.inf
    assert MM1(mu=10).response_s(20, 4) == pytest.approx(0.2)


def test_files_that_are_not_problems(tmp_path):
    for name, text, reason in (
        ("broken.json", "{", "not JSON"),
        ("twice.json", '{"name": "a", "name": "b"}', "given twice"),
        ("deep.json", "[" * 100_000, "not JSON"),
        ("list.json", "[]", "must be an object"),
    ):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(FieldError, match=reason):
            read_problem(path)
    with pytest.raises(FieldError, match="cannot be read"):
        read_problem(tmp_path / "absent.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FieldError, match="cannot be read"):
        read_problem(tmp_path / "bytes.json")
