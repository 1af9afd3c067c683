"""`leeward evaluate agiledart`: the quantities beside values computed by hand, and files that make no sense."""

from __future__ import annotations

import json
from hashlib import blake2b

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.policies.agiledart.scaling.health import Load
from leeward.policies.agiledart.scaling.rules import GuardedRule, SecantRule

SCALING = {"x": 4, "second": 6, "r": 100, "q": 50, "R": 1000, "Q": 500, "drain_s": 10}
RECOVERY = {"S": 60e6, "m": 4, "k": 2, "uplinks": [5e6] * 6, "download": 100e6, "store_uplink": 20e6}
LINK = {"from": 0, "to": 1, "attempts": 4, "delivered": 2}
PATHS = {"tau": 20, "links": [LINK]}


def evaluate(tmp_path, document, *options):
    (file := tmp_path / "case.json").write_text(json.dumps(document))
    return CliRunner().invoke(_build(), ["evaluate", "agiledart", str(file), *options])


def section(tmp_path, name, value):
    done = evaluate(tmp_path, {name: value}, "--output", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert list(document) == [name]
    return document[name]


# --- scaling


def test_scaling_by_hand(tmp_path):
    found = section(tmp_path, "scaling", SCALING | {"a": 0.25, "Q": 1000})
    # f(4) = 0.25 * 400/1000 + 0.75 * 200/1000, f(6) = 1.5 f(4), f = 1 at 4 / 0.25
    assert found == pytest.approx(
        {
            "health": 0.25, "health_second": 0.375, "solution": 16, "secant_x": 16,
            "need": (1000 + 1000 / 10) / 100, "guarded_aim": 1, "guarded_x": 11,
        }
    )  # fmt: skip


def test_the_guarded_aim_has_room_for_the_errors(tmp_path):
    found = section(tmp_path, "scaling", SCALING | {"need_error": 0.05})
    assert (found["need"], found["guarded_aim"], found["guarded_x"]) == (10.5, pytest.approx(1.1), 12)  # 11.55
    found = section(tmp_path, "scaling", SCALING | {"Q": 0, "need_error": 0.05, "rate_error": 0.05})
    assert found["guarded_aim"] == pytest.approx(1.225)  # 4.5 errors of the rate, which is all
    assert found["guarded_x"] == 13


@pytest.mark.parametrize("x, Q", [(4, 500), (9, 0), (30, 2000)])
def test_the_rules_themselves_say_the_same(tmp_path, x, Q):
    found = section(tmp_path, "scaling", SCALING | {"x": x, "Q": Q, "second": x + 3})
    plain, guarded = SecantRule(q=50, second=x + 3), GuardedRule(drain_s=10)
    one, other = (Load(x=number, r=100, R=1000, Q=Q) for number in (x, x + 3))
    plain.tell(one)
    assert plain.tell(other) == found["secant_x"]
    assert guarded.tell(one) == found["guarded_x"]


def test_an_empty_queue_has_an_infinite_health(tmp_path):
    found = section(tmp_path, "scaling", SCALING | {"Q": 0})
    assert found["health"] is None and found["solution"] == 0 and found["secant_x"] == 0
    assert section(tmp_path, "scaling", SCALING | {"R": 0, "Q": 0})["guarded_x"] == 1


# --- recovery


def test_recovery_by_hand(tmp_path):
    found = section(tmp_path, "recovery", RECOVERY | {"setup_s": 0.5, "coding": 600e6, "stripes": 100})
    assert found == pytest.approx(
        {
            "papers_s": 60 / (5 * 5),  # S / ((m + k - 1) u)
            "rebuild_s": 0.5 + 60 / (6 * 5) + 0.1 / 100,
            "central_s": 0.5 + 60 / 20,
            "whole_fragments_s": 0.5 + 15 / 5,
        }
    )


def test_of_unequal_holders_the_paper_has_the_slowest_and_whole_fragments_the_fastest(tmp_path):
    uplinks = [1e6, 8e6, 8e6, 8e6, 8e6, 2e6]
    found = section(tmp_path, "recovery", RECOVERY | {"uplinks": uplinks, "setup_s": 0, "coding": 1e15})
    assert found["papers_s"] == pytest.approx(60 / 5)
    assert found["whole_fragments_s"] == pytest.approx(15 / 8)
    assert found["rebuild_s"] == pytest.approx(60 / 35)


def test_one_holder_has_no_time_by_the_paper(tmp_path):
    found = section(tmp_path, "recovery", RECOVERY | {"m": 1, "k": 0, "uplinks": [5e6]})
    assert found["papers_s"] is None and found["rebuild_s"] > 12


# --- paths


def test_paths_by_hand(tmp_path):
    links = [
        {"from": 1, "to": 3, "attempts": 8, "delivered": 4},
        {"from": 0, "to": 1, "attempts": 10, "delivered": 10},
        {"from": 0, "to": 2, "attempts": 5, "delivered": 1},
        {"from": 2, "to": 3, "attempts": 0, "delivered": 0},
    ]
    found = section(tmp_path, "paths", {"links": links, "tau": 1, "doubt": 1})  # log 1 = 0: omega = 1 / theta_hat
    assert [(one["from"], one["to"]) for one in found["links"]] == [(0, 1), (0, 2), (1, 3), (2, 3)]
    column = {name: [one[name] for one in found["links"]] for name in found["links"][0]}
    assert column["theta_hat"] == [1.0, 0.2, 0.5, None]
    assert column["omega"] == pytest.approx([1, 5, 2, 1], abs=1e-6)
    assert column["C"] == pytest.approx([3, 6, 2, 1], abs=1e-6)
    assert found["J"] == pytest.approx([3, 2, 1, 0], abs=1e-6)
    assert found["path"] == [0, 1, 3]
    assert (column["alpha"], column["beta"]) == ([21, 3, 9, 1], [3, 11, 11, 3])


def test_omega_of_an_even_record_has_a_closed_form(tmp_path):
    (link,) = section(tmp_path, "paths", PATHS | {"c": 0.5})["links"]
    u = 1 / link["omega"]
    # KL(1/2, u) = -log(4 u (1 - u)) / 2 = 0.5 log(20) / 4
    assert 4 * u * (1 - u) == pytest.approx(20**-0.25) and u > 0.5


# --- placement


def test_placement_by_hand(tmp_path):
    zones = {"north": 0, "south": 50, "west": 51, "east": 1000}
    found = section(tmp_path, "placement", {"nodes": 10_000, "zones": zones})
    assert found == {"hops_bound": 4, "schedulers": {"north": 1, "south": 1, "west": 2, "east": 20}}


@pytest.mark.parametrize("nodes, hops", [(1, 0), (2, 1), (16, 1), (17, 2), (4096, 3), (4097, 4)])
def test_a_route_has_so_many_digits_as_the_overlay_needs(tmp_path, nodes, hops):
    assert section(tmp_path, "placement", {"nodes": nodes}) == {"hops_bound": hops}


def test_the_nearest_node_goes_round_the_ring(tmp_path):
    names = [f"node {number}" for number in range(40)]

    def position(name):
        return int(blake2b(name.encode(), digest_size=16).hexdigest(), 16)

    # A key above all ids is next to the first or the last one, by whichever way round is shorter.
    key = max((f"key {number}" for number in range(400)), key=position)
    found = section(tmp_path, "placement", {"names": names, "key": key})
    first, last = min(names, key=position), max(names, key=position)
    to_first, to_last = position(first) + 2**128 - position(key), position(key) - position(last)
    assert to_last > 0
    assert found["nearest"] == (first if to_first < to_last else last)
    assert found["key_id"] == f"{position(key):032x}"
    assert found["nearest_id"] == f"{position(found['nearest']):032x}"


# --- people, and bad input


def test_people_get_a_part_for_each_section(tmp_path):
    case = {"scaling": SCALING | {"Q": 0}, "recovery": RECOVERY, "paths": PATHS, "placement": {"zones": {"a": 51}}}
    done = evaluate(tmp_path, case)
    assert done.exit_code == 0
    heads = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert heads == ["scaling:", "recovery:", "paths:", "placement:"]
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert {"health -", "papers s 2.4", "path 0 1", "schedulers a:2"} <= set(lines)


@pytest.mark.parametrize(
    "document, says",
    [
        ({}, "case = {}: has no section. Give one or more of scaling"),
        ({"more": 1}, "case.more"),
        ({"scaling": {"x": 4}}, "scaling.r = None: is missing"),
        ({"scaling": SCALING | {"x": 1.5}}, "scaling.x = 1.5: must be a whole number"),
        ({"scaling": SCALING | {"x": 10**400}}, "scaling.x"),
        ({"scaling": SCALING | {"r": 0}}, "scaling.r = 0.0: must be greater than 0"),
        ({"scaling": SCALING | {"R": -1}}, "scaling.R = -1: is out of range"),
        ({"scaling": SCALING | {"a": 1.1}}, "scaling.a = 1.1: is no share"),
        ({"scaling": SCALING | {"second": 4}}, "scaling.second = 4: is x. Give another"),
        ({"recovery": RECOVERY | {"m": 0}}, "recovery.m"),
        ({"recovery": RECOVERY | {"k": 3}}, "recovery.uplinks"),
        ({"recovery": RECOVERY | {"uplinks": [5e6] * 5 + [0]}}, "recovery.uplinks[5] = 0.0"),
        ({"recovery": RECOVERY | {"stripes": 0}}, "recovery.stripes"),
        ({"paths": PATHS | {"tau": 0}}, "paths.tau = 0.0"),
        ({"paths": PATHS | {"c": 0}}, "paths.c = 0.0"),
        ({"paths": PATHS | {"links": []}}, "paths.links"),
        ({"paths": PATHS | {"links": [LINK, LINK]}}, "paths.links = [(0, 1)]: are given twice"),
        ({"paths": PATHS | {"links": [LINK | {"to": 0}]}}, "paths.links[0].to = 0"),
        ({"paths": PATHS | {"links": [LINK | {"to": 2}]}}, "paths.links = [0, 2]: are not the numbers of nodes"),
        ({"paths": PATHS | {"links": [LINK, LINK | {"to": 2}]}}, "without a path to the last one. Add links"),
        ({"paths": PATHS | {"links": [LINK | {"delivered": 5}]}}, "paths.links[0].delivered = 5.0: does not fit"),
        ({"paths": PATHS | {"links": [LINK | {"delivered": 0}]}}, "paths.links[0].delivered = 0.0"),
        ({"placement": {}}, "placement = {}: is empty"),
        ({"placement": {"nodes": 0}}, "placement.nodes = 0"),
        ({"placement": {"zones": {"north": -1}}}, "placement.zones.north = -1"),
        ({"placement": {"key": "app"}}, "placement.names = None: is missing"),
        ({"placement": {"names": [], "key": "app"}}, "placement.names = []"),
    ],
)  # fmt: skip
def test_bad_input_names_field_value_and_remedy(tmp_path, document, says):
    done = evaluate(tmp_path, document)
    assert done.exit_code == 2 and says in done.stderr
