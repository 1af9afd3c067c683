"""The wheel on other releases of Storm and Python: its project's README, line by line (`make test-versions`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.package.user import User, play

#: One of each minor release in the Maven registry that runs on Java 17 (2.3 does not), and the newest before ours.
STORM = ("2.4.0", "2.5.0", "2.6.4", "2.7.1", "2.8.2")
PYTHON = ("3.12", "3.13")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", STORM)
def test_the_project_runs_on_this_storm(version: str, user: User):
    """One wheel, whose jars were compiled against another release."""
    user.install("leeward[service]")
    user.shell("leeward quickstart my_project", user.folder)
    said = play(user, user.folder / "my_project", storm_version=version)
    assert f"Storm {version}" in said.of("leeward cluster install")[0]


def pythons(version: str) -> list[str]:
    """Where an interpreter of this release may be."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    own = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    return [found for found in (shutil.which(f"python{version}"), *map(str, own)) if found]


def runs(python: str) -> bool:
    """A shim of pyenv's may be on PATH with nothing behind it."""
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", PYTHON)
def test_the_project_runs_on_this_python(version: str, arrive: Callable[..., User]):
    python = next(filter(runs, pythons(version)), None)
    if python is None:
        pytest.skip(f"no python{version} on PATH, nor pyenv's")
    user = arrive(python)
    user.install("leeward[service]")
    user.shell("leeward quickstart my_project", user.folder)
    play(user, user.folder / "my_project")
