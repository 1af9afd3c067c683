"""The project that `sparse quickstart` writes, submitted as it is to a local cluster, and then made stateful."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from leeward.local import ClusterSpec, LocalCluster, processes
from leeward.local.cluster import MARK
from tests.helpers.servers import port_block

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


#: The project's three files with state that moves, in place of streamparse's own.
STATEFUL = {
    "src/bolts/wordcount.py": """
        from leeward.runtime import StatefulBolt


        class WordCountBolt(StatefulBolt):
            outputs = ["word", "count"]

            def process(self, tup):
                (word,) = tup.values
                count = self.state[word] = self.state.get(word, 0) + 1
                if count % 100 == 0:
                    self.logger.info("%s: %d so far", word, count)
                self.emit([word, count])
    """,
    "src/spouts/words.py": """
        from leeward.runtime import StatefulSpout

        WORDS = ("dog", "newt", "heron", "otter")


        class WordSpout(StatefulSpout):
            outputs = ["word"]

            def next_tuple(self):
                sent = self.state.get("sent", 0)
                self.emit([WORDS[sent % len(WORDS)]])
                self.state["sent"] = sent + 1
    """,
    "topologies/wordcount.py": """
        from bolts.wordcount import WordCountBolt
        from spouts.words import WordSpout

        from leeward.runtime import Topology, keyed


        class WordCount(Topology):
            word_spout = WordSpout.spec()
            count_bolt = WordCountBolt.spec(inputs={word_spout: keyed("word")}, par=2)
    """,
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
    found = re.findall(rf"^(\S+ \S+) .*\b{word}: (\d+) so far", text, re.MULTILINE)
    return [int(count) for _, count in sorted(found)]


@pytest.mark.timeout(300)
def test_the_project_made_stateful_keeps_its_counts_while_it_moves(project: Path, cluster: LocalCluster):
    for name, text in STATEFUL.items():
        assert (project / name).exists(), "streamparse writes another project now"
        (project / name).write_text(dedent(text))
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
    assert counts == [100 * n for n in range(1, len(counts) + 1)], "each hundred once, in order"
