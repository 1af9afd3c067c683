"""A dry run as a document: what the guards say, and figures that JSON can carry."""

from __future__ import annotations

import json
import math

import pytest

from leeward.cli._output import Output, document_text
from leeward.control.dry_run import dry_run, no_letters, plan_document, preview_by_hand
from leeward.control.loop import plan_fields
from leeward.core.errors import ConfigError, PlanError
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings, settings_from, with_options
from leeward.core.standing import Standing
from leeward.core.table import even_table
from tests.helpers.control_views import view


def wider(seen, **estimate) -> Plan:
    """A plan that gives `work` a second replica."""
    tables = {**seen.tables, "work": even_table([2, 3])}
    return Plan(tables=tables, placement=seen.assignment, reason="load", estimate=Estimate(**estimate))


def test_the_infinite_objective_of_a_deployment_that_breaks_a_bound_is_null():
    document = plan_document(wider(view(), objective=0.5, objective_now=math.inf), view(), Settings(), frozen=False)
    assert document["objective_now"] is None and document["objective"] == 0.5
    assert json.loads(document_text(document, Output.json))["change"] is True
    logged = plan_fields(wider(view(), objective_now=math.inf), view())  # `serve --once` tells these, too
    assert json.loads(json.dumps(logged, allow_nan=False))["objective_now"] is None


def test_a_change_tells_its_way_and_what_holds_it_up():
    document = plan_document(wider(view()), view(), Settings(), frozen=False)
    assert (document["change"], document["refused"], document["way"]) == (True, "", "handover")
    frozen = plan_document(wider(view()), view(), Settings(), frozen=True)
    assert (frozen["change"], frozen["refused"]) == (False, "the topology is frozen")
    dear = plan_document(wider(view()), view(), Settings(cost_cap=1.0), frozen=False)
    assert not dear["change"] and "cost_cap" in dear["refused"]
    same = plan_document(Plan(tables=view().tables, placement=view().assignment, reason=""), view(), Settings(),
                         frozen=True)  # fmt: skip
    assert not same["change"] and same["refused"] == ""


def test_without_a_policy_there_is_nothing_to_run():
    with pytest.raises(ConfigError, match="policy"):
        dry_run(view(), settings_from({"policy": "none"}), now=1.0, frozen=False, post=no_letters)


class Forgetful:
    """Gives all key groups of `work` to a task that it does not place, or that is not there."""

    def __init__(self, settings):
        pass

    def decide(self, view, *, now, rng):
        return Plan(tables={**view.tables, "work": even_table([9999])}, placement=view.assignment)


class Silent(Forgetful):
    """Returns nothing."""

    def decide(self, view, *, now, rng):
        return None


class Short(Forgetful):
    """Gives half a table."""

    def decide(self, view, *, now, rng):
        return Plan(tables={**view.tables, "work": (3,) * 64}, placement=view.assignment)


def test_a_malformed_plan_is_refused_with_its_fault():
    def run(policy):
        chosen = settings_from({"policy": f"{__name__}:{policy}"})
        return dry_run(view(), chosen, now=1.0, frozen=False, post=no_letters)

    for policy, why in (("Forgetful", "gives group 0 to 9999"), ("Short", "has 64 entries, not 128")):
        document = run(policy)
        assert not document["change"] and why in document["refused"] and "way" not in document
    with pytest.raises(PlanError, match="the policy returned None, which is no Plan"):
        run("Silent")


def test_a_policy_that_asks_peers_is_refused_before_a_letter_is_written():
    chosen = settings_from({"policy": "tests.helpers.http_api:AsksPeers"})
    with pytest.raises(ConfigError, match="may not write to them"):
        dry_run(view(), chosen, now=1.0, frozen=False, post=no_letters)


def test_a_deployment_by_hand_is_told_or_refused():
    told = preview_by_hand(view(), {"work": {"n2": 1}}, Settings(), None)
    assert told["changes"] == [{"component": "work", "kind": "move", "before": {"n1": 1}, "after": {"n2": 1}}]
    with pytest.raises(PlanError, match="n9"):
        preview_by_hand(view(), {"work": {"n9": 1}}, Settings(), None)
    two = {"work": {"n2": 1}, "sink": {"n3": 1}}
    with pytest.raises(PlanError, match="2 moves are over most_moves 1"):
        preview_by_hand(view(), two, Settings(most_moves=1), None)
    with pytest.raises(PlanError, match="frozen: a release"):
        preview_by_hand(view(), two, Settings(), Standing(frozen=True, why="a release"))


def test_options_hold_for_every_topology_and_change_nothing_else():
    chosen = settings_from(
        {
            "policy": "even",
            "period_s": 5,
            "edrp": {"w_r": 0.5},
            "topologies": {"taxi": {"policy": "none", "period_s": 7}},
        }
    )
    over = with_options(chosen, ["period_s=9", "edrp.w_c=0.4"])
    assert (over.service.policy, over.service.period_s) == ("even", 9.0)
    assert (over.of("taxi").service.policy, over.of("taxi").service.period_s) == ("none", 9.0)
    assert over.policies["edrp"] == {"w_r": 0.5, "w_c": "0.4"} and chosen.service.period_s == 5
    assert with_options(chosen, []) == chosen
    with pytest.raises(ConfigError, match="perod_s"):
        with_options(chosen, ["perod_s=1"])
