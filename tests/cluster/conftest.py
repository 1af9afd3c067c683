"""One cluster for all tests of migrations; every test module has a topology of its own on it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.harness import Running, Stage, stage

#: Another checkout on the same machine takes another one.
BASE = int(os.environ.get("LEEWARD_TEST_PORT", "22000"))


@pytest.fixture(scope="session")
def stage_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Up from the first test that needs it to the end."""
    with stage(tmp_path_factory.mktemp("stage"), BASE) as running:
        yield running


@pytest.fixture(scope="module")
def counting(stage_: Stage, request: pytest.FixtureRequest) -> Iterator[Running]:
    """The counting topology at 200 tuples/s, under the name of the test module."""
    with stage_.counting(request.module.__name__.rpartition(".")[2].removeprefix("test_")) as running:
        yield running
