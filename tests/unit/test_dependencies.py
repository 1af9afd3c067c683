"""`requirements.in` names every distribution that a Python file of the project imports, and no other."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from leeward.local.topology_jar import WORKER_PACKAGES

ROOT = Path(__file__).parents[2]
ROOMS = ("scheduler", "bolts", "topologies", "tests", "scripts", "src")
#: Top-level modules of the project itself; `src` of a streamparse project is on the path of its tasks.
OWN = {"leeward", "bolts", "topologies", "tests"}
#: Declared, and used as a command, as a plug-in or by another library.
NOT_IMPORTED = {
    "highspy": "cvxpy calls it",
    "setuptools": "pkg_resources for streamparse's command line",
    "pytest-cov": "plug-in of pytest",
    "pytest-timeout": "plug-in of pytest",
    "pytest-xdist": "plug-in of pytest",
    "mypy": "command",
    "ruff": "command",
    "uv": "command",
    "hatchling": "build back end",
    "editables": "the build back end calls it",
}
#: Imported, and installed by a dependency that has to choose its version.
BROUGHT_BY = {
    "pystorm": "streamparse",
    "fabric39": "streamparse",
    "jinja2": "streamparse",
    "pillow": "matplotlib",
    "py4j": "pyspark",
}


def declared() -> set[str]:
    lines = (line.split("#")[0].strip() for line in (ROOT / "requirements.in").read_text().splitlines())
    return {name_of(re.split(r"[\[<>=!~;]", line)[0]) for line in lines if line}


def name_of(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


distributions = cache(packages_distributions)


@cache
def imported() -> dict[str, str]:
    """Top-level module that is not ours and not Python's -> one of the files that import it."""
    installed = distributions()
    found: dict[str, str] = {}
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))] + [ROOT / "fabfile.py"]
    beside = {part.removesuffix(".py") for path in files for part in path.relative_to(ROOT).parts}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for top in {name.split(".")[0] for name in names}:
                if top not in OWN and (top in installed or top not in beside | sys.stdlib_module_names):
                    found.setdefault(top, str(path.relative_to(ROOT)))
    return found


@pytest.mark.long
def test_what_is_imported_is_declared():
    of = distributions()
    for module, path in sorted(imported().items()):
        names = {name_of(name) for name in of.get(module, ())}
        assert names & (declared() | BROUGHT_BY.keys()), (
            f"{path} imports {module}: name its distribution in requirements.in"
        )


@pytest.mark.long
def test_what_is_declared_is_used():
    of = distributions()
    used = {name_of(name) for module in imported() for name in of.get(module, ())}
    unused = declared() - used - NOT_IMPORTED.keys()
    assert not unused, f"nothing imports {sorted(unused)}: take them out of requirements.in"
    assert not NOT_IMPORTED.keys() - declared()


def test_what_is_locked_is_installed_by_its_hash():
    text = (ROOT / "requirements.lock").read_text()
    locked = {name_of(name) for name in re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.MULTILINE)}
    assert declared() <= locked, f"make lock: {sorted(declared() - locked)}"
    assert all(
        "--hash=sha256:" in entry for entry in re.split(r"\n(?=[A-Za-z0-9])", text) if "==" in entry.split("\n")[0]
    )


def test_what_runs_is_in_an_extra_of_the_wheel():
    """requirements.in and pyproject.toml name the same, but for what only developers of Leeward use."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    offered = {name_of(re.split(r"[\[<>=!~;]", line)[0]) for lines in extras.values() for line in lines}
    text = (ROOT / "requirements.in").read_text()
    run = {
        name_of(re.split(r"[\[<>=!~;]", line)[0])
        for line in text.partition("# development")[0].splitlines()
        if line and not line.startswith("#")
    }
    assert offered - {"leeward"} == run


def test_what_workers_import_is_in_the_extra_runtime():
    """A worker's environment has neither solver nor Spark; the rooms that run there need nothing else."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    light = {name_of(re.split(r"[\[<>=!~;]", line)[0]) for line in extras["runtime"]} | {"pystorm"}
    of, rooms = distributions(), [ROOT / "scheduler" / "leeward" / part for part in WORKER_PACKAGES]
    for path in (path for room in rooms for path in sorted(room.rglob("*.py"))):
        for module in modules_of(path) - OWN - set(sys.stdlib_module_names):
            assert {name_of(name) for name in of[module]} & light, f"{path} imports {module}"


def modules_of(path: Path) -> set[str]:
    """Top-level modules that a file imports, but for those that only its types name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
