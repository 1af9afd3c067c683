"""`make wheels`, whose wheels are of real packages: a rollout finds all that its two lists pin."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leeward.deploy.artifacts import gather
from leeward.deploy.inventory import Host, Inventory, Role
from tests.deploy.wheels import ROOT


@pytest.mark.slow
def test_the_wheels_are_those_that_a_rollout_sends(tmp_path: Path):
    host = Host(name="n", address="n", roles=frozenset(Role), storm_home="/opt/storm", folder="/opt/leeward")
    subprocess.run(["make", "wheels", f"FOLDER={tmp_path}"], cwd=ROOT, check=True, timeout=900)
    [wheel] = tmp_path.glob("leeward-*.whl")
    found = gather(Inventory(hosts=(host,), redis="redis://d:6379/0"), wheel=wheel)
    sent = {Path(path).name.split("-")[0] for path in found.service_venv.wheels}
    assert sent > {"leeward", "streamparse", "cvxpy", "highspy", "numba", "uvicorn"} and "pyspark" not in sent
    assert len(found.runtime_venv.wheels) < len(found.service_venv.wheels)
