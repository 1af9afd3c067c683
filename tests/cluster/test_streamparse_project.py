"""The project that `sparse quickstart` writes, submitted as it is to a local cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.local import ClusterSpec, LocalCluster, processes
from leeward.local.cluster import MARK
from tests.servers import port_block

BASE = port_block()
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    made = subprocess.run(
        [BIN / "sparse", "quickstart", "words"], cwd=folder, env=os.environ | {"LEIN_ROOT": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "words"


@pytest.fixture(scope="module")
def cluster(project: Path) -> Iterator[LocalCluster]:
    folder = project / "cluster"
    with LocalCluster(ClusterSpec(dir=folder, base_port=BASE, supervisors=1, slots=2)) as running:
        yield running
    assert processes.marked(MARK, str(folder)) == set()


def submit(project: Path, cluster: LocalCluster, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "leeward", "submit", "--cluster", cluster.dir, *more], cwd=project, capture_output=True, text=True
    )


@pytest.mark.timeout(300)
def test_the_project_of_sparse_quickstart_runs_as_it_is(project: Path, cluster: LocalCluster):
    """Its config.json has one environment, `prod`, without a Nimbus; its bolt is streamparse's own."""
    before = (project / "config.json").read_bytes()
    done = submit(project, cluster, "-w", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "config.json").read_bytes() == before
    end = time.monotonic() + 120
    while not any("counted [" in file.read_text() for file in cluster.dir.rglob("worker.log*")):
        assert time.monotonic() < end, cluster.summary()
        time.sleep(0.5)
    summary = cluster.summary()
    assert [(name, workers) for name, _, workers, *_ in summary.topologies] == [("wordcount", 1)]


@pytest.mark.timeout(120)
def test_an_environment_that_cannot_be_used_is_said(project: Path, cluster: LocalCluster):
    for more, said in (
        (("-e", "prod"), "error: environment 'prod': nimbus is empty."),
        (("-e", "lab"), "error: environment: 'lab' is not in config.json. It has prod;"),
        (("--config", "nope.json"), "error: config: nope.json does not exist."),
        (("-n", "nope"), "There are: wordcount."),
        (("nope", "-n", "wordcount"), "Name it once."),
    ):
        done = submit(project, cluster, *more)
        assert done.returncode == 2 and said in done.stderr, done.stdout + done.stderr
