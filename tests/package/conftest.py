"""The wheel, built once, and users who install it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.doc_blocks import ROOT
from tests.package.user import User


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    make = ["make", "--no-print-directory", "wheel", f"WHEELS={folder}"]
    (ROOT / "out").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=ROOT / "out") as of_a_run:  # as a benchmark leaves it
        (Path(of_a_run) / "leeward").symlink_to(ROOT / "scheduler" / "leeward")
        subprocess.run(make, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture
def arrive(tmp_path: Path, wheels: Path) -> Iterator[Callable[..., User]]:
    """Call it for a user; a cluster that their project leaves is ended."""
    users: list[User] = []

    def arrive(python: str = sys.executable) -> User:
        users.append(User(tmp_path, wheels, python))
        return users[-1]

    yield arrive
    leeward = tmp_path / "env" / "bin" / "leeward"
    for project in tmp_path.glob("*/config.json"):
        down = [leeward, "cluster", "down"]
        subprocess.run(down, cwd=project.parent, env=users[-1].environment, check=True)


@pytest.fixture
def user(arrive: Callable[..., User]) -> User:
    return arrive()
