"""The project that `sparse quickstart` writes, submitted as it is to a local cluster, and then made stateful."""

from __future__ import annotations

import os
import re
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


IN = "\n" + 8 * " "
#: file -> texts as streamparse has them, and as they are with state that moves
CONVERSION = {
    "src/bolts/wordcount.py": {
        "from collections import Counter\n\nfrom streamparse import Bolt": "from leeward.runtime import StatefulBolt",
        "(Bolt)": "(StatefulBolt)",
        "self.counter = Counter()\n": "pass\n",
        "        self.pid = os.getpid()\n        self.total = 0\n": "",
        f"self.counter[word] += inc_by{IN}self.total += inc_by": "self.state[word] = self.state.get(word, 0) + inc_by",
        "self.total % 1000 == 0": "self.state[word] % 1000 == 0",
        'f"counted [{self.total:,}] words [pid={self.pid}]"': 'f"{word}: {self.state[word]} [pid={os.getpid()}]"',
        "self.counter[word]]": "self.state[word]]",
    },
    "src/spouts/words.py": {
        "from itertools import cycle\n\nfrom streamparse import Spout": "from leeward.runtime import StatefulSpout",
        "(Spout)": "(StatefulSpout)",
        'cycle(["dog", "cat", "zebra", "elephant"])': '["dog", "cat", "zebra", "elephant"]',
        "word = next(self.words)\n": f"n = self.state['n'] = self.state.get('n', 0) + 1{IN}word = self.words[n % 4]\n",
    },
    "topologies/wordcount.py": {
        "from streamparse import Grouping, Topology": "from leeward.runtime import Topology, keyed",
        'Grouping.fields("word")': 'keyed("word")',
    },
}


def leeward(project: Path, cluster: LocalCluster, *words: str) -> str:
    done = subprocess.run(
        [BIN / "leeward", *words, "--cluster", cluster.dir], cwd=project, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def logged(cluster: LocalCluster, word: str) -> list[int]:
    """Counts of the word in the workers' logs, as they were written."""
    text = "\n".join(file.read_text(errors="replace") for file in cluster.dir.rglob("worker.log*"))
    found = re.findall(rf"^(\S+ \S+) .*\b{word}: (\d+) \[pid=", text, re.MULTILINE)
    return [int(count) for _, count in sorted(found)]


@pytest.mark.timeout(300)
def test_the_project_made_stateful_keeps_its_counts_while_it_moves(project: Path, cluster: LocalCluster):
    for name, changes in CONVERSION.items():
        text = (project / name).read_text()
        for before, after in changes.items():
            assert before in text, f"{name}: streamparse writes another project now"
            text = text.replace(before, after)
        (project / name).write_text(text)
    done = submit(project, cluster, "-N", "stateful", "-w", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    leeward(project, cluster, "status", "stateful", "--wait", "120")
    until = time.monotonic() + 60
    while len(logged(cluster, "dog")) < 3:
        assert time.monotonic() < until
        time.sleep(0.5)
    moved = leeward(project, cluster, "reconfigure", "stateful", "--replicas", "count_bolt=127.0.0.11:2")
    assert moved.splitlines()[-1] == "done"
    seen = len(logged(cluster, "dog"))
    until = time.monotonic() + 60
    while len(logged(cluster, "dog")) < seen + 3:
        assert time.monotonic() < until
        time.sleep(0.5)
    counts = logged(cluster, "dog")
    assert counts == list(range(1000, 1000 * len(counts) + 1, 1000)), "each thousand once, in order"
