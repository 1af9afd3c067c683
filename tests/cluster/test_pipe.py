"""Values of every type through four workers of a real Storm, in both forms of the pipe, beside a stock bolt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.local import build_jar, submit_topology
from leeward.local.places import checkout
from tests.cluster.harness import Running, Stage, await_

PIPE = Path(__file__).parent / "pipe"
sys.path.append(str(PIPE / "src"))
from pipe_values import ALL, JSON, UNFIT, told  # noqa: E402


def jar(stage: Stage) -> Path:
    src, target = stage.folder / "pipe-src", stage.folder / "pipe.jar"
    if not target.exists():
        src.mkdir()
        (src / "leeward").symlink_to(checkout() / "scheduler" / "leeward")
        for file in (PIPE / "src").glob("*.py"):
            (src / file.name).symlink_to(file)
        build_jar(target, src=src, worker_jar=checkout() / "build" / "jars" / "leeward-worker.jar")
    return target


@contextmanager
def submitted(stage: Stage, name: str, options: list[str]) -> Iterator[Running]:
    """On four workers; the harness would wait for the stock bolt to tell its mode."""
    options = ["topology.workers=4", *options]
    submit_topology("pipe", name=name, nimbus=stage.cluster.nimbus, jar=jar(stage), project=PIPE, options=options)
    try:
        yield Running(stage, name, stage.nimbus.topologies()[name])
    finally:
        stage._kill(name)


@pytest.mark.parametrize("ackers", [0, 1])
def test_every_type_arrives_as_it_was_and_a_stock_bolt_works_beside(stage_: Stage, ackers: int) -> None:
    out = stage_.folder / f"pipe-{ackers}"
    options = [f"pipe.out={out}", f"topology.acker.executors={ackers}"]

    def lines(name: str) -> list[str]:
        file = out.with_name(f"{out.name}.{name}")
        return file.read_text().splitlines() if file.exists() else []

    with submitted(stage_, f"pipe-{ackers}", options) as running:
        await_(lambda: len(lines("last")) >= len(ALL), "all values to arrive")
        await_(lambda: len(lines("stock")) >= 2 * len(JSON), "the stock bolt to get its share")
        pids = stage_.cluster.python_pids()
        errors = stage_.nimbus._call(lambda client: client.getTopologyInfo(running.id)).errors
        (last,) = running.tasks("last")
        assert len(set(running.snapshot().assigned.slots.values())) == 4
        assert set(stage_.cluster.python_pids()) == set(pids), "a process was lost"
    wanted = {f"{i} {told(value)}" for i, value in enumerate(ALL)}
    assert set(lines("last")) == wanted
    echo = lines("echo")
    assert {line for line in echo if not line.startswith("ids")} == wanted
    assert {line for line in echo if line.startswith("ids")} == {f"ids {i} [{last}]" for i in range(len(ALL))}
    plain = {f"plain {told(i)} {told(value)}" for i, value in enumerate(JSON)}
    assert set(lines("stock")) == plain | {f"direct {told(i)}" for i in range(len(JSON))}
    told_of = [error.error for error in errors.get("echo", [])]
    assert len(told_of) == len(UNFIT) and all("was not sent" in error and "echo" in error for error in told_of)
    assert any("field 1: {1, 2} of type set" in error for error in told_of)


def test_storms_own_serializer_does_as_well(stage_: Stage) -> None:
    """Its values are those that JSON has: the counting topology sends no others."""
    own = ("topology.multilang.serializer=org.apache.storm.multilang.JsonSerializer",)
    with stage_.counting("counting-json", options=own) as running:
        running.stream.exact(400)
