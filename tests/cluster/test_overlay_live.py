"""Topologies on a real Storm, placed by agents beside the supervisors; no `leeward serve` runs."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward.core.table import replicas
from leeward.policies.agiledart.overlay.messages import StateIs
from tests.cluster.harness import Running, Stage, await_
from tests.helpers.overlay_agents import Agents, joined, rooms, states

#: The policy by its class, as an entry point is seen only once the package has been installed.
OPTIONS = ("policy=leeward.policies.agiledart.overlaid:Overlaid", "session_s=3", "period_s=30")


@pytest.fixture
def agents(stage_: Stage, tmp_path: Path) -> Iterator[Agents]:
    started = Agents(tmp_path, heartbeat_s=0.5, secrets=stage_.cluster.secrets_file)
    yield started
    started.end_all()


def events(agents: Agents, action: str) -> list[dict[str, Any]]:
    """Of all agents, those that were killed included."""
    lines = [line for file in sorted(agents.folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["action"] == action]


def deployed(running: Running) -> Counter[tuple[str, str]]:
    """(component, node) of each replica, as Storm has placed it."""
    snapshot, record = running.snapshot(), running.record()
    return Counter(
        (component, snapshot.assigned.slots[task].node)
        for component, table in record.tables.items()
        for task in replicas(table)
    )


def joined_hosts(agents: Agents, running: Running) -> Counter[tuple[str, str]]:
    """The same, as the agents have decided it last."""
    decided = [event for event in events(agents, "application") if event["application"] == running.id]
    assert {event["status"] for event in decided} <= {"placed"}, decided
    hosts = max(decided, key=lambda event: event["t"])["hosts"] if decided else {}
    return Counter((operator.rpartition("#")[0], node) for operator, node in hosts.items())


def held(agents: Agents) -> set[str]:
    """Topologies of which the agents hold operators."""
    found = agents.ask(lambda client: rooms(client, agents))
    return {application for one in found.values() for application, _ in one.operators}


def scheduler(found: dict[int, StateIs]) -> int | None:
    return next((number for number, one in found.items() if one.schedules), None)


@pytest.mark.timeout(500)
def test_an_elected_scheduler_places_and_its_successor_too(stage_: Stage, agents: Agents):
    cluster = stage_.cluster
    for node in cluster.nodes:
        options = ["--cluster", str(cluster.dir), "--events", str(agents.folder / f"{node.name}.jsonl")]
        for option in OPTIONS:
            options += ["-o", option]
        agents.start(node.name, capacity=8, options=options)
    first = scheduler(agents.ask(lambda client: joined(client, agents)))
    assert first is not None
    await_(lambda: events(agents, "serving"), "the elected agent to look for topologies")
    # Storm may be faster than the first plan: in one slot each, it leaves room for what the agents want then
    with stage_.counting("joined_a", rate=100, workers=1) as a:
        await_(lambda: deployed(a) == joined_hosts(agents, a), "the placement that the JOINs found")
        await_(lambda: a.snapshot().assigned.managed, "the plugin to say that it placed by the plan")
        a.stream.flow(200)
        assert {event["topology"] for event in events(agents, "leading")} == {"joined_a"}
        agents.end(first)
        await_(lambda: len(events(agents, "leading")) > 1, "another agent to lead it")
        second = scheduler(agents.ask(lambda client: states(client, list(agents.running))))
        assert second is not None and second != first
        with stage_.counting("joined_b", rate=100, workers=1) as b:
            await_(lambda: deployed(b) == joined_hosts(agents, b), "the placement that the JOINs found")
            b.stream.exact()
            slots = [set(one.snapshot().assigned.slots.values()) for one in (a, b)]
            assert not slots[0] & slots[1], "a slot is used by both"
        a.stream.settled()
        await_(lambda: held(agents) == {a.id}, "the rooms of the ended topology to be free, and no others")
        assert [agents.end(number, signal.SIGINT) for number in list(agents.running)] == [0, 0]
        a.stream.flow(200)  # the topology needs no service to go on
    assert not events(agents, "service_failed")
