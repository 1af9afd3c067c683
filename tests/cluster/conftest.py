"""One cluster for all tests of migrations; every test module has a topology of its own on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.harness import Running, Stage, revive, stage
from tests.helpers.servers import port_block


@pytest.fixture(scope="package")
def stage_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Up from the first test that needs it to the end."""
    with stage(tmp_path_factory.mktemp("stage"), port_block()) as running:
        yield running


@pytest.fixture(autouse=True)
def whole_stage(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails while a daemon is stopped leaves it stopped; the tests after it shall not fail for that."""
    stage = request.getfixturevalue("stage_") if "stage_" in request.fixturenames else None
    yield
    if stage is not None:
        revive(stage.cluster)


@pytest.fixture(scope="module")
def counting(stage_: Stage, request: pytest.FixtureRequest) -> Iterator[Running]:
    """The counting topology at 200 tuples/s, under the name of the test module."""
    with stage_.counting(request.module.__name__.rpartition(".")[2].removeprefix("test_")) as running:
        yield running
