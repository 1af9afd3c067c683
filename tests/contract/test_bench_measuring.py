"""The benchmark of measuring, for seconds: each tuple is processed, and a part that is taken out is out."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from leeward.core.errors import ConfigError
from tests.helpers.benches import BENCH, bench_module


@pytest.fixture(scope="module")
def measured_task():
    with bench_module("measured_task") as module:
        yield module


@pytest.mark.long
def test_each_mode_does_its_parts_only_and_no_tuple_is_lost(tmp_path):
    out = tmp_path / "measuring.json"
    command = [sys.executable, str(BENCH / "measuring.py"), "--quick", "--folder", str(tmp_path / "run"), "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=os.environ, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert list(result["tasks"]) == ["counting", "passing"]
    for task in result["tasks"].values():
        assert list(task["rates"]) == ["0", "200"]
        for found in task["rates"].values():
            assert set(found["us"]) == {"all", "none", "publication only", "sampling only", "counts only"}
            for mode, one in found["rounds"][0].items():
                assert one["cpu_s"] > 0 and one["tuples"] >= 100
                # a task that waits for the processor all the time publishes nothing in so short a round
                assert one["published"] == 0 or mode in ("all", "publication only")
        line = task["line"]
        assert line["processed"] == task["counted"] > 0 and line["in"]["pass"] == task["sent"]
        assert line["out"]["default"] == task["counted"]
        assert 0 < line["sojourns"] <= task["sent"]
    assert 0 < sum(result["tasks"]["counting"]["line"]["groups"].values()) < result["tasks"]["counting"]["sent"]


def test_measuring_in_each_task_of_a_path_is_compared_with_the_path_without_it():
    tasks = {name: {"rates": {"0": {"parts_ns": {"all": ns}}}} for name, ns in (("counting", 50.0), ("passing", 20.0))}
    with bench_module("measuring") as measuring:
        assert measuring.share_of_path(tasks, 0, {"jvm": 4.0, "python": 6.15}) == pytest.approx(0.015)


def test_at_a_light_load_the_publications_of_a_path_count_by_their_own_time():
    parts = {"sampling only": 10.0, "counts only": 40.0, "publication only": 900.0, "all": 50.0}
    rates = {"0": {"parts_ns": parts}, "200": {"line_us": 500.0, "redis_us": 300.0, "parts_ns": {"all": -999.0}}}
    with bench_module("measuring") as measuring:
        assert measuring.measuring_us_of(rates, 200) == pytest.approx(4.05)
        share = measuring.share_of_path({"counting": {"rates": rates}}, 200, {"jvm": 500.0, "python": 512.15})
        assert share == pytest.approx(0.01215)


def test_code_that_measures_no_more_where_it_did_is_an_error(measured_task, monkeypatch):
    method = measured_task.Loop._loop
    monkeypatch.setitem(measured_task.PARTS["counts"], method, {"source.count -= 1": "pass"})
    with pytest.raises(ConfigError, match=r"Loop._loop has 'source.count -= 1' 0 times"):
        measured_task.without(method, ["counts"])
    assert measured_task.without(method, []).__name__ == "_loop"
