"""The live run's own values: scenario, network, streams, and the figures that it concludes."""

from __future__ import annotations

import random
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from leeward.core.arrivals import Arrival
from leeward.core.fields import FieldError
from leeward.core.network_document import network_text, parse_network
from leeward.policies.bimodal.experiments.live import WIRE, Carried, Lived, Window, conclude, delivered, modelled
from leeward.policies.bimodal.experiments.live_setup import (
    Scenario,
    agents_of,
    network_of,
    scenario_of,
    servers_of,
    stream_of,
)
from leeward.policies.bimodal.facts import components_of, task_of
from leeward.policies.bimodal.model.agents_file import agents_from_json, agents_to_json
from leeward.policies.bimodal.model.values import why_impossible

SCENARIOS = Path(__file__).parents[2] / "storm_conf" / "scenarios"


def scenario(name: str = "bimodal") -> Scenario:
    return scenario_of(tomllib.loads((SCENARIOS / f"{name}.toml").read_text()))


@pytest.mark.parametrize("name", ["bimodal", "bimodal-quick"])
@pytest.mark.parametrize("seed", range(5))
def test_a_scenario_gives_a_network_that_can_be_emulated_and_agents_for_it(name: str, seed: int):
    wanted = replace(scenario(name), seed=seed)
    servers = servers_of(wanted, random.Random(seed))
    assert len(servers.links) == wanted.links and len(servers.hosts) == wanted.services
    network = network_of(wanted, servers)
    assert parse_network(tomllib.loads(network_text(network))) == network
    assert [node.id for node in network.workers] == [f"v{n + 1}" for n in range(wanted.nodes)]
    for one in servers.links.values():
        link = network.dedicated(f"v{one.a + 1}", f"v{one.b + 1}")
        assert link is not None and link.rate_mbps == wanted.link_mbps
    agents = agents_of(servers, dict.fromkeys(servers.servers, ("198.18.0.1", 7400)))
    assert agents_to_json(agents_from_json(agents_to_json(agents))) == agents_to_json(agents)
    assert servers_of(wanted, random.Random(seed)).hosts == servers.hosts


def test_streams_have_room_on_the_empty_network():
    wanted, rng = scenario(), random.Random(0)
    servers = servers_of(wanted, rng)
    for number in range(30):
        stream = stream_of(f"s{number}", wanted, rng)
        assert stream.source != stream.delivery and len(set(stream.services)) == wanted.chain
        components = components_of(stream)
        names = [component.id for component in components]
        task = task_of("t", components, list(pairwise(names)), {f"v{v + 1}": v for v in servers.servers})
        assert not why_impossible(task, servers)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("nodes", 1, "2 to 20"),
        ("links", 99, "21 pairs"),
        ("mbps", 0, "mbps"),
        ("sigma", -1, "sigma"),
        ("chain", 1.5, "chain"),
    ],
)
def test_a_wrong_scenario_is_told_by_its_field(field, value, says):
    document = tomllib.loads((SCENARIOS / "bimodal.toml").read_text())
    with pytest.raises(FieldError, match=says):
        scenario_of({**document, field: value})


def test_the_delivered_share_counts_events_in_the_time():
    stream = replace(stream_of("s", scenario(), random.Random(0)), rate=10.0)
    arrivals = [Arrival("c", "p", n, 0, 0, 0, n * 100_000, "v1") for n in range(1, 101)]
    assert delivered(arrivals, stream, 100_000, 10_100_000) == pytest.approx(1.0)
    assert delivered(arrivals, stream, 100_000, 20_100_000) == pytest.approx(0.5)


def test_the_model_is_the_slowest_public_hop_and_what_others_leave_of_the_uplink():
    stream = replace(stream_of("s", scenario(), random.Random(0)), mbps=(0.5,) * 3)
    rates = {("a", "b"): [0.6, 0.6], ("b", "c"): [0.6, 0.3]}
    ways = {("a", "b"): (), ("b", "c"): (), ("c", "d"): ("c", "x", "d")}
    assert modelled(stream, ways, rates.__getitem__, {}) == pytest.approx(0.45 / 0.5 / WIRE)
    assert modelled(stream, ways, rates.__getitem__, {"b": 1.5}) == pytest.approx(0.3 / 0.5 / WIRE)
    assert modelled(stream, {("c", "d"): ("c", "x", "d")}, rates.__getitem__, {}) == 1.0


def test_the_figures_say_what_was_met():
    stream = stream_of("s1", scenario(), random.Random(0))
    behind, well = (
        Window(share=0.6, model=0.7, ways={("a", "b"): ()}),
        Window(share=1.2, model=1.0, ways={("a", "b"): ("a", "b")}),
    )
    one = Lived(
        stream=stream, id="s1-1", submitted_to_plan_s=0.4, as_mapped=True, full=behind, freed=well, moved=1, events=9
    )
    other = Lived(
        stream=stream, id="s2-1", submitted_to_plan_s=0.5, as_mapped=True, full=replace(well, share=0.99), killed=True
    )
    refused = Lived(stream=stream, id="s3-1", refused="no room")
    rows = {row.metric: row for row in conclude(scenario(), [one, other, refused], Carried(dedicated=1, public=2)).rows}
    assert rows["deviation from the agreed rate, 1 with public hops"].ours == pytest.approx(40)
    assert rows["the same when others had ended, and their links were free"].ours == 0
    assert rows["streams that the agents have mapped"].ours == 2 and rows["lost"].met
    assert rows["streams that the agents have refused"].ours == 1
    assert all(row.met in (True, None) for row in rows.values())
    lossy = conclude(scenario(), [replace(one, lost=1)], None)
    assert [row.metric for row in lossy.rows if row.met is False] == ["lost"]
