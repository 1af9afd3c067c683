"""A live experiment without its cluster: what it concludes from events of the service, and that figures are told."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from leeward.cli import _agiledart_latency, _live
from leeward.cli._experiment import tell
from leeward.cli._live import Live, LiveError, run_steps, scenario_document, scenario_file, scenario_words
from leeward.cli._output import Output
from leeward.core.experiment import Finding, Row
from leeward.core.network import NIMBUS, Network, NetworkNode, Site
from leeward.policies.agiledart.experiments.latency_setup import scenario_of

NETWORK = Network(
    sites=(Site(id="here"),),
    nodes=(NetworkNode(id="nimbus", site="here", role=NIMBUS), NetworkNode(id="node-1", site="here")),
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with ExitStack() as stack:
        yield Live(name="trial", network=NETWORK, out=tmp_path, folder=tmp_path / "c", base_port=7000, stack=stack)


def happened(live: Live, *events: dict[str, Any]) -> None:
    with (live.out / "events.jsonl").open("a") as file:
        file.writelines(json.dumps({"t": 1.0, "topology": "a"} | event) + "\n" for event in events)


def over(t: float, kind: str = "handover", ending: str = "done") -> dict[str, Any]:
    return {"t": t, "action": "reconfiguration_ended", "kind": kind, "ending": ending}


def test_events_are_a_topology_s_own_and_read_as_they_come(live: Live):
    assert live.plan_of("a") is None, "there is no file yet"
    happened(live, {"action": "plan_made", "topology": "b"}, {"action": "plan_made", "t": 2.0})
    assert live.plan_of("a") == {"action": "plan_made", "t": 2.0, "topology": "a"}
    happened(live, {"action": "plan_made", "t": 3.0})
    assert [event["t"] for event in live.named("a", "plan_made")] == [2.0, 3.0]


def test_moves_are_those_after_the_first_place(live: Live):
    happened(live, over(1.0, "restart"), over(2.0), over(3.0), over(4.0, ending="failed"), over(5.0, "reset"))
    assert live.placed("a")[0]["t"] == 1.0, "a reconfiguration brought it there"
    assert live.moves("a") == Counter({"handover": 2, "handover given up": 1, "reset": 1})
    assert live.moves("a", since=3.0, until=4.0) == Counter(handover=1)
    assert [event["t"] for event in live.done("a")] == [1.0, 2.0, 3.0]
    assert [event["t"] for event in live.ended("a")] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(("by_plan", "moves"), [(True, 1), (False, 0)])
def test_storm_s_first_placement_counts_if_it_is_the_plan_s(live: Live, by_plan: bool, moves: int):
    happened(live, {"action": "first_placement", "by_plan": by_plan}, over(2.0))
    assert len(live.placed("a")) == 1 + by_plan
    assert live.moves("a").total() == moves


def test_at_rest_is_some_time_after_the_last_reconfiguration_of_each(live: Live):
    assert live.at_rest(["a", "b"], 10.0)
    happened(live, {"action": "reconfiguration_started", "t": 1.0})
    assert not live.at_rest(["a"], 10.0) and live.at_rest(["b"], 10.0)
    happened(live, over(2.0))
    assert live.at_rest(["a"], 10.0)
    happened(live, over(time.time()))
    assert not live.at_rest(["b", "a"], 10.0)


def test_a_plan_that_was_refused_is_told_with_its_reason(live: Live):
    assert live.refused("a", since=0.0) == ""
    happened(live, *({"action": "plan_refused", "t": t, "why": why} for t, why in ((1.0, "early"), (2.0, "late"))))
    assert live.refused("a", since=0.0) == live.refused("a", since=2.0) == "late"
    assert live.refused("a", since=2.1) == live.refused("b", since=0.0) == ""


def test_latency_is_not_measured_while_plans_are_refused(live: Live, monkeypatch: pytest.MonkeyPatch):
    """Steady as it is: the policy would have the topology elsewhere."""
    monkeypatch.setattr(_agiledart_latency, "STEADY_S", 1.0)
    monkeypatch.setattr(_agiledart_latency, "SPAN_S", 0.2)
    file = scenario_file("agiledart-latency", "agiledart-latency", quick=True)
    scenario = replace(scenario_of(scenario_document(file, None)), settle_s=0.1)
    run = _agiledart_latency.LatencyRun(scenario, (), live)
    for name in ("a", "b"):
        came = [time.time() + step / 100 for step in range(-100, 500)]
        lines = [json.dumps({"seq": n, "sent": at - 0.1, "received": at}) for n, at in enumerate(came)]
        live.sink_file(name).write_text("\n".join(lines))
    happened(live, {"action": "plan_refused", "t": time.time() + 60, "why": "it would lose state"})
    with pytest.raises(LiveError, match="plans are refused: it would lose state"):
        run._await_steady("a", may_grow=False)
    began = time.monotonic()
    run._await_steady("b", may_grow=False)
    assert time.monotonic() - began < 1.0, "nothing is refused, and all is steady"


def test_lines_of_sinks_are_none_before_the_file_is_there(live: Live):
    assert live.lines("a") == [] and live.arrived("a") == []
    live.sink_file("a").write_text("q2 q0.q1 3 3000000 0 0 3001000 node-1\nq2 q0")
    assert len(live.lines("a")) == 2
    assert [one.number for one in live.arrived("a")] == [3]


def test_a_wait_ends_with_what_was_waited_for(live: Live, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_live, "LONG_S", 0.2)
    live.await_(lambda: True, "nothing")
    with pytest.raises(LiveError, match=r"waited 0\.2 s for the moon"):
        live.await_(lambda: False, "the moon")


class Failing:
    """Steps of which one fails."""

    def __init__(self, at: str) -> None:
        self.at = at

    def start(self) -> None:
        self._step("start")

    def play(self) -> None:
        self._step("play")

    def result(self) -> Finding:
        return Finding(rows=(Row(figure="Live", setting="here", metric="events", unit="", ours=3.0),), panels=())

    def _step(self, name: str) -> None:
        if name == self.at:
            raise LiveError(f"{name} failed.")


@pytest.mark.parametrize(("at", "told"), [("play", True), ("start", False)])
def test_figures_are_told_where_a_step_fails_but_not_without_a_cluster(live: Live, at: str, told: bool):
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(LiveError, match=f"{at} failed"):
            run_steps(live, Failing(at), command="leeward trial", seed=4, output=Output.json)
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler, "everything is ended then"
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (live.out / "trial.json").exists() == told


class FailingFirst(Failing):
    """The same before there is any figure."""

    def result(self) -> Finding:
        return Finding(rows=(), panels=(), notes=("Nothing was measured.",))


def test_a_step_that_fails_before_the_first_figure_is_told(live: Live, capsys: pytest.CaptureFixture[str]):
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(LiveError, match="play failed"):
            run_steps(live, FailingFirst("play"), command="leeward trial", seed=4, output=Output.table)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().out.startswith("Nothing was measured.\n")


def test_a_scenario_is_read_with_another_seed_if_one_is_given(tmp_path: Path):
    (file := tmp_path / "one.toml").write_text("seed = 1\nnodes = 4\n")
    assert scenario_document(file, None) == {"seed": 1, "nodes": 4}
    assert scenario_document(file, 0) == {"seed": 0, "nodes": 4}
    with pytest.raises(LiveError, match="cannot be read"):
        scenario_document(tmp_path / "two.toml", None)


def test_a_finding_is_told_as_yaml(live: Live, capsys: pytest.CaptureFixture[str]):
    finding = Failing("never").result()
    tell("trial", finding, command="leeward trial", seed=4, seconds=1.0, output=Output.yaml, out=live.out)
    assert yaml.safe_load(capsys.readouterr().out)["rows"][0]["metric"] == "events"


def test_the_command_that_is_printed_names_the_scenario_as_it_was_given():
    assert scenario_words(None, quick=False) == "" and scenario_words(None, quick=True) == " --quick"
    assert scenario_words(Path("own/trial.toml"), quick=True) == " --scenario own/trial.toml"
