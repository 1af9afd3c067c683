"""The wheel, as a new user meets it: in an empty environment, in an empty folder, outside any checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doc_blocks import ROOT, blocks
from tests.servers import port_block

BASE_PORT = port_block()
UV = Path(sys.executable).parent / "uv"


class User:
    """Somebody with a wheel, an empty folder and an environment with nothing in it."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder, self.wheels = folder, wheels
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("LEEWARD", "PYTHON", "VIRTUAL"))
        }
        self.environment = outside | {
            "PATH": f"{folder / 'env' / 'bin'}:/usr/local/bin:/usr/bin:/bin:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder / "env"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
            "UV_FIND_LINKS": str(wheels),
            "LEEWARD_BASE_PORT": str(BASE_PORT),
        }
        self.run([UV, "venv", "--quiet", "--python", sys.executable, "env"])

    def run(self, command: list[object], *, cwd: Path | None = None, exit_code: int = 0) -> str:
        """A command and what it printed, errors too."""
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd or self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400,
        )  # fmt: skip
        assert done.returncode == exit_code, f"{command}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def install(self, *packages: str, cwd: Path | None = None) -> None:
        """From the wheels and the registry, in the versions that are locked."""
        locked = self.folder / "constraints.txt"
        lines = (ROOT / "requirements.lock").read_text().splitlines()
        locked.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line))
        self.run([UV, "pip", "install", "--quiet", "-c", locked, *packages], cwd=cwd)

    def shell(self, line: str, folder: Path) -> str:
        """A line of a README, as it stands; `pip` is uv's, as the environment has none."""
        if line.startswith("pip install"):
            self.install(*line.split("#")[0].split()[2:], cwd=folder)
            return ""
        return self.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        ["make", "--no-print-directory", "wheel", f"WHEELS={folder}"], cwd=ROOT, check=True, capture_output=True
    )
    return folder


@pytest.fixture
def user(tmp_path: Path, wheels: Path) -> Iterator[User]:
    user = User(tmp_path, wheels)
    yield user
    leeward = tmp_path / "env" / "bin" / "leeward"
    for project in tmp_path.glob("*/config.json"):
        said = subprocess.run(
            [leeward, "cluster", "down"], cwd=project.parent, env=user.environment, capture_output=True
        )
        assert said.returncode == 0, said.stderr


def test_the_source_distribution_makes_the_same_wheel(wheels: Path, tmp_path: Path):
    (archive,) = wheels.glob("*.tar.gz")
    (wheel,) = wheels.glob("*.whl")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    subprocess.run(
        [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", tmp_path / "again"],
        cwd=unpacked,
        check=True,
    )
    (again,) = (tmp_path / "again").glob("*.whl")
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    """File -> checksum."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def test_a_worker_needs_the_light_extra_alone(user: User):
    user.install("leeward[runtime]")
    python = user.folder / "env" / "bin" / "python"
    loaded = json.loads(user.run([python, "-W", "ignore", "-c", LOADED]))
    assert "leeward.runtime" in loaded
    assert not set(loaded) & {"numpy", "numba", "cvxpy", "pyspark", "matplotlib", "scipy", "typer", "rich"}
    freeze = user.run([UV, "pip", "freeze"])
    for heavy in ("numpy", "numba", "cvxpy", "pyspark", "matplotlib", "scipy"):
        assert f"{heavy}==" not in freeze
    said = user.run([user.folder / "env" / "bin" / "leeward", "--help"], exit_code=2)
    assert said == "error: typer is not installed. Run pip install 'leeward[service]'.\n"


LOADED = """
import json, sys
import leeward.runtime
print(json.dumps(sorted(name for name in sys.modules if "." not in name or name.startswith("leeward"))))
"""


@pytest.mark.timeout(900)
def test_a_project_is_begun_and_its_readme_is_true(user: User):
    """From the empty folder to a topology that was scaled and moved, by the project's own README."""
    start = time.monotonic()
    user.install("leeward[service]")
    user.shell("leeward quickstart my_project", user.folder)
    project = user.folder / "my_project"
    lines = [
        line for block in blocks(project / "README.md") if block.language == "sh" for line in block.text.splitlines()
    ]
    said = [(line, user.shell(line, project)) for line in lines]
    print(f"{len(lines)} commands of the README in {time.monotonic() - start:.0f} s, installation included")
    tables = [counts(text) for line, text in said if line.startswith("python look.py")]
    assert len(tables) == 2 and tables[0].keys() <= tables[1].keys() and sum(tables[0].values()) > 0
    assert all(tables[1][word] >= count for word, count in tables[0].items()), "a count went back"
    moves = [text for line, text in said if line.startswith("leeward reconfigure") and "--dry-run" not in line]
    assert [text.splitlines()[-1] for text in moves] == ["done", "done"]
    assert "3 passed" in next(text for line, text in said if line.startswith("pytest"))
    assert "0 processes" not in said[-1][1], "the cluster was up until the end"
    assert sorted(path.name for path in user.folder.iterdir()) == ["cache", "constraints.txt", "env", "my_project"]
    written = {path.name for path in project.iterdir()} - {
        "README.md",
        "config.json",
        "look.py",
        "pyproject.toml",
        "requirements.txt",
        "src",
        "tests",
        "topologies",
        ".gitignore",
        ".pytest_cache",
    }
    assert written <= {".leeward", "_build", "_resources"}, "all in the project's own folder, or streamparse's"


def counts(table: str) -> dict[str, int]:
    """What look.py printed."""
    rows = [line.split() for line in table.splitlines()]
    return {word: int(count) for count, word in rows}
