"""The folder `../shared`, with instances and data that are not the project's: its place, and how a test skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("LEEWARD_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TAXI = SHARED / "data" / "taxi"
#: The first 45 minutes of the DEBS 2015 rides.
RIDES = TAXI / "debs2015_20130101_0000-0045.csv.gz"


def needs(path: Path) -> pytest.MarkDecorator:
    """The mark of a test that is skipped where `path`, a part of the folder, is absent."""
    return pytest.mark.skipif(not path.exists(), reason=_reason(path))


def stored(folder: str, pattern: str) -> list[Path]:
    """The files in a folder of it whose names match, by name, one at least; skips where the folder is absent."""
    if not (SHARED / folder).is_dir():
        pytest.skip(_reason(SHARED / folder))
    found = sorted((SHARED / folder).glob(pattern))
    assert found, f"no {pattern} in {SHARED / folder}"
    return found


def _reason(path: Path) -> str:
    return f"needs ../shared: {path.relative_to(SHARED)}"
