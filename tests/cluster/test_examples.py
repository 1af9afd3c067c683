"""Five small projects of the shape of public ones: as they are, beside a Leeward topology, and made elastic.

Each is in `examples/stock` with streamparse's classes alone and in `examples/converted` with Leeward's.
`examples/results.py` knows what must come out; `tests/unit/test_examples_code.py` looks at their code.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leeward.local.processes import command_line
from tests.cluster.examples.results import CONVERTED, EXAMPLES, STOCK, Example, Place
from tests.cluster.harness import ROOT, Running, Stage, await_
from tests.cluster.served import Served
from tests.helpers.servers import RedisServer

BIN = Path(sys.executable).parent
QUICK = "ships"
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES if name != QUICK]
both_kinds = pytest.mark.parametrize("name", [QUICK, *SLOW])


@dataclass
class Beside:
    """A Leeward topology that counts, and one service for all topologies of the cluster."""

    stage: Stage
    counting: Running
    served: Served
    redis: RedisServer  #: the examples' own

    def led(self) -> set[str]:
        """Names of the topologies that the service has led so far."""
        return self.served.topologies("leading")


@pytest.fixture(scope="module")
def beside(stage_: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    folder = tmp_path_factory.mktemp("beside")
    server = RedisServer(folder)
    try:
        with stage_.counting("beside", rate=50, workers=1) as counting:
            served = Served(stage_, folder / "events.jsonl")
            try:
                yield Beside(stage_, counting, served, server)
                assert served.end(signal.SIGTERM) == 0
            finally:
                served.end(signal.SIGKILL)
    finally:
        server.stop()


def flows(example: Example, place: Place) -> None:
    """Wait for a new result."""
    before = example.result(place)
    await_(lambda: example.result(place) != before, f"{example.topology} to go on")


def judge(example: Example, place: Place) -> None:
    """End the source, and wait for the right result, which has to stay."""
    place.file("end").touch()
    await_(lambda: (place.sent() or 0) > 0, "the source to end")

    def right() -> bool:
        return example.result(place) == example.expected(place.sent())

    try:
        await_(right, "the right result", 60)
        time.sleep(2)  # a tuple that comes a second time comes by then
        assert right()
    except AssertionError as error:
        found, expected = example.result(place), example.expected(place.sent())
        raise AssertionError(f"{error}: {place.sent()} sent, {found} instead of {expected}") from None


@both_kinds
@pytest.mark.timeout(300)
def test_as_it_is_it_runs_beside_leeward_which_leaves_it_alone(beside: Beside, tmp_path: Path, name: str):
    example, place = EXAMPLES[name], Place(tmp_path, beside.redis.url)
    project = shutil.copytree(STOCK, tmp_path / "project")
    options = [part for option in place.options for part in ("-o", option)]
    command = [BIN / "leeward", "submit", name, "-w", "1", "--cluster", beside.stage.cluster.dir, *options]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    identity = beside.stage.nimbus.topologies()[name]

    def workers() -> set[int]:
        return {pid for pid in beside.stage.cluster.worker_pids().values() if identity in command_line(pid)}

    try:
        flows(example, place)
        at_first = workers()
        beside.counting.stream.flow(200)
        flows(example, place)
        judge(example, place)
        assert len(at_first) == 1 and workers() == at_first
    finally:
        beside.stage._kill(name)
    beside.counting.stream.exact()
    assert "beside" in beside.led() and name not in beside.led()
    ours = beside.stage.zookeeper.get_children(f"{ROOT}/topologies")
    assert beside.counting.id in ours and identity not in ours


@both_kinds
@pytest.mark.timeout(400)
def test_converted_it_scales_and_moves_and_its_result_is_right(beside: Beside, tmp_path: Path, name: str):
    example, place = EXAMPLES[name], Place(tmp_path, beside.redis.url)
    jar, elastic = beside.stage.project_jar(CONVERTED), f"elastic_{name}"
    with beside.stage.submitted(name, elastic, jar, CONVERTED, place.options, 3) as running:
        await_(lambda: elastic in beside.led(), "the service to lead it")
        flows(example, place)
        scaled_and_moved(example, place, running)
        judge(example, place)
    beside.counting.stream.exact()


def scaled_and_moved(example: Example, place: Place, running: Running) -> None:
    """A second replica of the component that keeps the result; then a single one, and the source, on a third node."""
    nodes = [node.name for node in running.cluster.nodes]
    here = running.snapshot().assigned.slots[running.owner(example.keeper)].node
    there, third = (node for node in nodes if node != here)
    tables = []
    for wanted in (
        (f"{example.keeper}={here}:1,{there}:1",),
        (f"{example.keeper}={third}:1", f"{example.source}={third}:1"),
    ):
        done = running.asked(*wanted)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
        tables.append(set(running.record().tables[example.keeper]))
        flows(example, place)
    assert [len(owners) for owners in tables] == [2, 1], tables
    slots = running.snapshot().assigned.slots
    assert {slots[min(running.record().tables[name])].node for name in (example.keeper, example.source)} == {third}
