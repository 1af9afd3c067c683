"""The first test that sends packets compiles the kernels, which takes a processor of its own some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Beside two other lanes, s.
COMPILING_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(COMPILING_S))
