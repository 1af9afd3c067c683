"""People decide about a topology on the real Storm, under load: freeze, approve, apply, roll back; nothing is lost."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leeward.core.model import ClusterView
from leeward.core.plan import Plan
from leeward.core.table import replicas
from tests.cluster.builders import scaled
from tests.cluster.harness import Running, await_, leeward

pytestmark = pytest.mark.timeout(400)


def ask(counting: Running, command: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of a command about the topology."""
    done = leeward(command, *words, "--cluster", str(counting.cluster.dir), "--output", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def count_of(counting: Running) -> int:
    return len(replicas(counting.record().tables["count"]))


class Steady:
    """A policy that wants two replicas of `count`, however often it is asked."""

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        if len(replicas(view.tables["count"])) == 2:
            return Plan(tables=view.tables, placement=view.assignment)
        return scaled("count", 2)(view)


def test_a_plan_waits_for_approval_and_the_way_back_is_open(counting: Running) -> None:
    pilot = counting.pilot(mode="live")
    pilot.script = Steady()  # type: ignore[assignment]
    pilot._settings = replace(pilot._settings, approval=True)
    with pilot:
        await_(lambda: pilot.events.named("plan_proposed"), "a proposal")
        assert count_of(counting) == 1
        code, told = ask(counting, "diff", counting.name)
        assert code == 2 and [change["component"] for change in told["changes"]] == ["count"], told
        assert ask(counting, "freeze", counting.name, "--why", "a test")[0] == 0
        code, told = ask(counting, "approve", counting.name)
        assert code == 2 and "is frozen: a test" in told["why"]
        assert ask(counting, "freeze", counting.name, "--undo")[0] == 0
        code, told = ask(counting, "approve", counting.name)
        assert code == 0 and count_of(counting) == 2, told
        code, told = ask(counting, "rollback", counting.name, "--freeze", "worse")
        assert code == 0 and count_of(counting) == 1, told
        assert ask(counting, "status", counting.name)[1]["frozen"] == "worse"
    counting.stream.exact(400)
    assert not pilot.events.named("reset", "alert")


def test_a_document_is_applied_where_nobody_leads(counting: Running, tmp_path: Path) -> None:
    ask(counting, "freeze", counting.name, "--undo")
    status = ask(counting, "status", counting.name)[1]
    (node,) = status["deployment"]["count"]
    file = tmp_path / "counting.json"
    file.write_text(json.dumps({"topology": counting.name, "deployment": {"count": {node: 1}}}))
    assert ask(counting, "diff", counting.name, "--file", str(file))[0] == 0
    others = [name for name in status["nodes"] if name != node]
    file.write_text(json.dumps({"topology": counting.name, "deployment": {"count": {node: 1, others[0]: 1}}}))
    assert ask(counting, "diff", counting.name, "--file", str(file))[0] == 2
    code, told = ask(counting, "apply", str(file))
    assert code == 0 and count_of(counting) == 2, told
    counting.stream.exact(400)
