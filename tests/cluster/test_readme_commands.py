"""Every `leeward`, `sparse` and `fab` line of the README is run, in its order; ports, sizes, paths are the test's."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.local import LocalCluster
from tests.helpers.doc_blocks import ROOT, commands
from tests.helpers.edge_cloud_builders import case_document
from tests.helpers.servers import port_block
from tests.helpers.shared_folder import SHARED, TAXI
from tests.helpers.solve_builders import chain_document

BASE_PORT = port_block()
GRAPH = SHARED / "data" / "topologies" / "Ans.graphml"
LINES = [c.line.partition("#")[0].strip() for c in commands(ROOT / "README.md")]
LEEWARD = [line for line in LINES if line.startswith("leeward ")]
RATES = ROOT / "scheduler" / "leeward" / "replay" / "data" / "rate_by_hour_of_week.csv"
OTHERS = [line for line in LINES if "sparse " in line or line.startswith("fab ")]


class Reader:
    """Somebody with a checkout who types the README's lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "topologies", "storm_conf", "config.json", "fabfile.py"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "instance.json").write_text(json.dumps(chain_document()))
        (folder / "case.json").write_text(json.dumps(case_document()))
        self.environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "STREAMPARSE_NIMBUS": f"127.0.0.1:{BASE_PORT + 27}",
            "PYTHONWARNINGS": "ignore",
            "LEEWARD_CLUSTER": "out/cluster",  # as in the checkout; a project has it in .leeward/
        }

    def type(self, line: str, *, exit_code: int = 0) -> str:
        """A line, and what it printed, errors too."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == exit_code, f"{line}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def await_running(self) -> None:
        """All tasks of query 1 have said that they run."""
        client = LocalCluster.attach(self.folder / "out/cluster").open_redis()
        until = time.monotonic() + 120
        while True:
            metrics = [json.loads(v) for key in client.keys("leeward:*:metrics") for v in client.hvals(key)]
            if len(metrics) == 20 and all(line["mode"] == "running" for line in metrics):
                return
            assert time.monotonic() < until, metrics
            time.sleep(0.5)

    def redis_url(self) -> str:
        return json.loads((self.folder / "out/cluster/cluster.json").read_text())["redis_url"]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    try:
        yield reader
    finally:
        assert "0 processes" in reader.type("leeward cluster down"), "the README left processes behind"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_commands_of_the_readme_work(reader: Reader):
    for line in LEEWARD:
        exit_code = 130 if "period_s" in line else 2 if "leeward recover" in line else 0
        if line.startswith("leeward network measure"):
            exit_code = 1  # this cluster was started without one
        said = reader.type(adapted(line, reader), exit_code=exit_code)
        if line.startswith("leeward submit"):
            reader.await_running()
        if line.startswith("leeward replay generate"):
            up(reader)  # the README's address is that of a cluster that is up
            rows = gzip.decompress((reader.folder / "out/rows.csv.gz").read_bytes())
            (reader.folder / "sorted_data.csv").write_bytes(rows)
        check(line, said)
    reader.type("leeward jar --out build/topology.jar")
    for line in OTHERS:
        check(line.removeprefix("LEIN_ROOT=1 "), reader.type(line))
    assert "processes ended" in reader.type("leeward cluster down")


def adapted(line: str, reader: Reader) -> str:
    """The line with this machine's ports and paths, and sizes for a test."""
    changes = {
        "leeward demo --hours 0.5": f"leeward demo --hours 0.2 --base-port {BASE_PORT}",
        "leeward cluster up": f"leeward cluster up --base-port {BASE_PORT}",
        "--hours 3": "--hours 0.05",
        "--speed 60": "--speed 0",
        "path/to/sorted_data.csv": "sorted_data.csv",
        "path/to/samples": str(TAXI),
        "path/to/Ans.graphml": f"{GRAPH} --quick",
        "--limit 60": "--quick --limit 2",
        "--rate rates.csv --peak 220 --hours 168": f"--rate {RATES} --peak 220 --hours 0.1",
    }
    for old, new in changes.items():
        line = line.replace(old, new)
    if "redis://" in line:
        line = " ".join(reader.redis_url() if word.startswith("redis://") else word for word in line.split())
    if "serve" in line and "--once" not in line:
        line = f"timeout --preserve-status -s INT 20 {line}"
    if ("replay derive" in line and not TAXI.is_dir()) or (str(GRAPH) in line and not GRAPH.is_file()):
        line = "true"
    return line


def up(reader: Reader) -> None:
    reader.type(f"leeward cluster up --base-port {BASE_PORT} --supervisors 2")


def check(line: str, said: str) -> None:
    """What each is there for."""
    shown = {
        "leeward demo": "equal to the undisturbed single-process reference",
        "leeward cluster status": "supervisor-5",
        "leeward network check": "160 20M",
        "leeward status": "placed by plan",
        "leeward serve query1 --once": "deployment",
        "leeward reconfigure": "done",
        "leeward recover": "the topology is not held",
        "leeward drain": "127.0.0.13 drains",
        "leeward tidy": "killed topologies have left nothing",
        "leeward reference": "2013-01-16 04:0",
        "leeward solve": "optimal",
        "leeward evaluate edge-cloud": "makespans",
        "leeward experiment edrp-table4": "9.4 / 9.46",
        "sparse list": "Topology-specific values",  # else "No topologies found."; names are wrapped
        "fab": "cluster_up",
    }
    for start, expected in shown.items():
        if line.startswith(start):
            assert expected in said, f"{line}: {said}"
