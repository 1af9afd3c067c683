"""The experiments of bi-modal links: rows that follow from runs, and quick ones that can be repeated."""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import fmean

import pytest

from leeward.core.experiment import Part, Row
from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.experiments import acceptance, agents, deviation, mapping, reallocation
from leeward.policies.bimodal.model.agents_file import Agents, agents_from_json, agents_to_json

FIGURES = {"acceptance": 50.0, "deviation": 15.0, "elongation": 20.0, "cpu": 1.0, "links": 2.0, "throughput": 3.0,
           "public hops": 1.0, "messages": 9.0}  # fmt: skip


def measured(study, change: Mapping[str, Mapping[str, float]] | None = None) -> dict[Part, dict[str, float]]:
    """The same figures for every part, but for points whose key begins with a key of `change`."""
    found = {}
    for part in study.parts(seed=0, quick=False):
        extra = next((c for name, c in (change or {}).items() if str(part.option("point")).startswith(name)), {})
        found[part] = FIGURES | dict(extra)
    return found


def rows(study, change: Mapping[str, Mapping[str, float]] | None = None) -> dict[tuple[str, str], Row]:
    finding = study.conclude(measured(study, change))
    assert finding.panels and finding.notes
    return {(row.setting.rsplit(",", 1)[0], row.metric): row for row in finding.rows}


def test_acceptance_is_bound_where_the_paper_s_curves_cross_half():
    found = rows(
        acceptance.Acceptance(), {"B, ours, 50": {"acceptance": 56.0}, "B, dedicated only, 120": {"acceptance": 44.0}}
    )
    assert found["B, 50 links", "acceptance"].met is True
    assert found["B, dedicated only, 120 links", "acceptance"].met is False
    assert found["B, 30 links", "acceptance"].met is None
    gain = found["B, ours, 50 links", "acceptance over the paper's rule"]
    assert gain.ours == 6.0 and gain.met is True
    assert rows(acceptance.Acceptance())["B, ours, 50 links", "acceptance over the paper's rule"].met is False


def test_deviation_is_bound_by_reading_and_links():
    found = rows(deviation.Deviation(), {"B, public only": {"deviation": 58.0}})
    metric = "deviation from the wanted rate"
    assert found["D, 99 links", metric].met is True and found["D, 125 links", metric].met is False
    assert (
        found["B, public only, 99 links", metric].met is True and found["D, public only, 99 links", metric].met is False
    )
    assert found["D, whole uplink, 99 links", metric].met is False and found["B, 99 links", metric].met is None


def test_re_allocation_has_to_be_better_than_none_on_the_same_networks():
    better = {"throughput": 4.0, "links": 3.0, "deviation": 10.0}
    found = rows(reallocation.Reallocation(), {"D, with, 60": better})
    assert found["D, with, 60 tasks/h, 99 links", "deviation from the wanted rate, with"].met is True
    worse = rows(reallocation.Reallocation(), {"D, with, 60": {"links": 1.0}})
    assert worse["D, with, 60 tasks/h, 99 links", "use of dedicated links, with"].met is False


@pytest.mark.parametrize("study", [acceptance.Acceptance(), deviation.Deviation(), reallocation.Reallocation()])
def test_a_part_gives_the_same_figures_again(study):
    part = min(study.parts(seed=3, quick=True), key=lambda part: "public only" not in part.name)
    small = Part(name=part.name, seed=part.seed, options=(("point", part.option("point")), ("tasks", 5)))
    first = study.measure(small)
    assert first == study.measure(small) and first.keys() == FIGURES.keys()


def test_maps_are_compared_on_one_network_and_their_rows_bound():
    study = mapping.Mapped()
    parts = [part for part in study.parts(seed=0, quick=True) if part.option("servers") == 20]
    found = {part: study.measure(part) for part in parts}
    assert found[parts[0]] == study.measure(parts[0])
    by_metric = {row.metric: row for row in study.conclude(found).rows}
    assert by_metric["ours: cost over the optimum"].ours == pytest.approx(1.0)
    assert by_metric["LeastCostMap: cost over the optimum"].ours >= 1.0
    assert by_metric["ours: messages over LeastCostMap's, gossip from nothing included"].met is True


@pytest.mark.timeout(300)
def test_generated_networks_and_tasks_are_as_tight_as_they_say():
    network = mapping.made_network(30, random.Random(1))
    assert len(network.links) == 1 + 28 * 2
    low, high = mapping.BANDWIDTH_MBPS
    assert all(low <= link.bandwidth <= high for link in network.links.values())
    cpu = fmean(server.cpu for server in network.servers.values())
    tasks = [mapping.made_task(network, random.Random(seed)) for seed in range(50)]
    assert all(task.source != task.delivery for task in tasks)
    assert fmean(need for task in tasks for need in task.cpu) == pytest.approx(mapping.LOAD * cpu, rel=0.05)
    looked_at = tasks[:25]  # a search that finds nothing takes a second
    mapped = sum(cheapest(task, network).walk is not None for task in looked_at)
    assert 0 < mapped < len(looked_at), "needs are tight: some tasks fit, and some do not"


def test_agents_get_a_file_that_they_can_read_and_figures_are_bound():
    network, tasks = agents.made(20, 10, 0)
    addresses = {v: ("127.0.0.1", 7000 + v) for v in network.servers}
    read = agents_from_json(agents_to_json(Agents(network=network, addresses=addresses, nodes={})))
    assert read.addresses[3] == ("127.0.0.1", 7003) and len(read.network.links) == len(network.links)
    assert len({task.name for task in tasks}) == 10
    found = {"tasks": [{"status": "running"}, {"status": "refused"}], "seconds": 61.0, "frames_per_task": 9.0,
             "bytes_per_task": 99.0, "dropped": 1}  # fmt: skip
    met = {row.metric: row.met for row in agents.conclude("survey", 120, found, 2)}
    assert met == {
        "all tasks decided": False, "tasks that run": False, "frames of a task, gossip included": None,
        "bytes of a task, gossip included": None, "frames that were dropped": False,
        "servers with reservations a lease after the end": False,
    }  # fmt: skip
