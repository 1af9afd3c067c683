"""The wheel, as a new user meets it: in an empty environment, in an empty folder, outside any checkout."""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from tests.helpers.solve_builders import chain_document
from tests.package.user import UV, User, play


def test_the_source_distribution_makes_the_same_wheel(wheels: Path, tmp_path: Path):
    (archive,) = wheels.glob("*.tar.gz")
    (wheel,) = wheels.glob("*.whl")
    with tarfile.open(archive) as tar:
        # Python 3.11.2, of Debian 12, has no filters yet; the archive is ours.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(tmp_path)
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
    told = user.shell("leeward quickstart my_project", user.folder)
    quickstarted = [line.strip().removeprefix("my_project/") for line in told.splitlines()[:-1]]
    project = user.folder / "my_project"
    said = play(user, project)
    print(f"{len(said.lines)} commands of the README in {time.monotonic() - start:.0f} s, installation included")
    assert sorted(path.name for path in user.folder.iterdir()) == ["cache", "constraints.txt", "env", "my_project"]
    mine = {path.split("/")[0] for path in quickstarted}
    written = {path.name for path in project.iterdir()} - mine - {".pytest_cache"}
    assert written <= {".leeward", "_build", "_resources"}, "all in the project's own folder, or streamparse's"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_wheel_generates_rows_and_compiles_its_solver(user: User):
    """The generator's tables are inside; the first solution compiles the search where the package is."""
    user.install("leeward[all]")
    leeward = user.folder / "env" / "bin" / "leeward"
    user.run([leeward, "replay", "generate", "--hours", "0.05", "--out", "slices", "--csv", "rows.csv.gz"])
    assert len(gzip.decompress((user.folder / "rows.csv.gz").read_bytes()).splitlines()) > 100
    (user.folder / "instance.json").write_text(json.dumps(chain_document()))
    found = json.loads(user.run([leeward, "solve", "instance.json", "--time-limit", "10", "--output", "json"]))
    assert found["status"] == "optimal"
    assert list((user.folder / "env").rglob("kernel_*.nbi"))
