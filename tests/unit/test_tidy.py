"""Rules of the house that a machine can hold us to (docs/design.md)."""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from leeward.local.topology_jar import WORKER_PACKAGES, discipline_files, room_files

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "scheduler/leeward"

#: What each part of the package may import of the others. Arrows never turn back.
MAY_IMPORT = {
    "core": set(),
    "policies": {"core"},
    "control": {"core"},
    "wire": {"core"},
    "adapters": {"core", "control", "wire"},
    "sim": {"core", "control", "runtime"},
    "runtime": {"core", "wire"},
    "replay": {"core"},
    "local": {"core", "control", "wire"},
    "deploy": {"core", "local"},
    "dashboard": {"core", "control", "adapters"},
    "cli": {
        "core", "policies", "control", "adapters", "sim", "runtime", "replay", "local", "dashboard", "wire",
    },
}  # fmt: skip
#: Modules that only these parts may import: a bolt never loads a solver or Spark.
ONLY_IN = {
    "cvxpy": {"policies"},
    "highspy": {"policies"},
    "numba": {"policies"},
    "pyspark": {"replay"},
    "kazoo": {"adapters", "runtime", "wire"},
    "redis": {"adapters", "runtime", "replay", "local", "deploy", "wire"},
}
#: Lines of a file for one sitting, and of those that hold one idea that does not come apart.
LONGEST = 450
EXCEPTIONS = {"core/protocol.py": 620}
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> list[str]:
    """Absolute names of everything that a file imports, wherever in the file."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return names


def imports_of_the_package() -> dict[str, set[str]]:
    """Module -> modules of the package that it imports, for types or late included; a package's init only by name."""
    paths = {}
    for path in SOURCES:
        parts = ("leeward", *path.relative_to(PACKAGE).with_suffix("").parts)
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for name, path in paths.items():
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        found = set()
        for node in nodes:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= members & paths.keys() if members <= paths.keys() else members | {node.module}
        graph[name] = found & paths.keys() - {name}
    return graph


def test_no_modules_import_each_other():
    list(TopologicalSorter(imports_of_the_package()).static_order())  # raises CycleError, which names the circle


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path):
    part = part_of(path)
    if part == "__main__.py":
        part = "cli"
    if part == "__init__.py":
        return
    for name in imported(path):
        if name.startswith("leeward."):
            other = name.split(".")[1]
            assert other == part or other in MAY_IMPORT[part], f"{part} imports {name}"
        top = name.split(".")[0]
        if top in ONLY_IN:
            assert part in ONLY_IN[top], f"{part} imports {top}"


def test_no_system_imports_another():
    for path in SOURCES:
        if part_of(path) == "policies" and len(path.relative_to(PACKAGE).parts) > 2:
            room = path.relative_to(PACKAGE).parts[1]
            for name in imported(path):
                if name.startswith("leeward.policies"):
                    assert name.split(".")[2:3] in ([room], ["compiled"]), f"{path.relative_to(PACKAGE)} imports {name}"


def test_workers_get_all_that_a_task_imports():
    assert set(WORKER_PACKAGES) == {"runtime", *MAY_IMPORT["runtime"]}


def test_disciplines_and_routers_run_in_workers():
    """They are in the jar without the rest of their rooms; of a router's room it has what the router imports."""
    assert "leeward/policies/dssp/disciplines.py" in discipline_files()
    routers = room_files("leeward.routers")
    assert "leeward/policies/agiledart/paths/routers.py" in routers
    for name in sorted(routers):
        for other in imported(PACKAGE.parent / name):
            mine = f"{other.replace('.', '/')}.py" in routers
            assert mine or other.split(".")[0] in sys.stdlib_module_names or other.startswith("leeward.core"), name
    for name in sorted(discipline_files()):
        for other in imported(PACKAGE.parent / name):
            top = other.split(".")[0]
            assert top in sys.stdlib_module_names or other.startswith("leeward.core"), f"{name} imports {other}"


def test_the_core_is_standard_library_without_clock_or_chance():
    for path in SOURCES:
        if part_of(path) != "core":
            continue
        for name in imported(path):
            top = name.split(".")[0]
            assert top == "leeward" or top in sys.stdlib_module_names, f"{path.name} imports {name}"
            assert top not in {"time", "socket", "os", "threading", "subprocess"}, f"{path.name}: {name}"
        assert "import random" not in path.read_text(), f"{path.name}: generators come as arguments (Random)"


def test_bolts_know_core_and_runtime_only():
    for path in sorted((ROOT / "bolts").rglob("*.py")):
        for name in imported(path):
            if name.startswith("leeward."):
                assert name.split(".")[1] in {"core", "runtime"}, f"{path} imports {name}"
            assert name.split(".")[0] not in {"cvxpy", "pyspark", "kazoo"}, f"{path} imports {name}"


def test_no_test_file_imports_another():
    """Else a test cannot be split or moved without those that count on it, and its fixtures run where nobody looks."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name in imported(path):
            parts = name.split(".")
            if parts[0] not in sys.stdlib_module_names:
                assert not parts[-1].startswith("test_"), f"{path.relative_to(ROOT)} imports {name}"


def test_functions_fit_a_screen_and_files_a_sitting():
    beside = [path for folder in ("bolts", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in [*SOURCES, *beside]:
        text = path.read_text()
        most = EXCEPTIONS.get(str(path.relative_to(PACKAGE)), LONGEST) if path.is_relative_to(PACKAGE) else LONGEST
        assert text.count("\n") <= most, f"{path} has {text.count(chr(10))} lines, at most {most} are allowed"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                length = node.end_lineno - node.lineno + 1
                assert length <= 70, f"{path}:{node.lineno} {node.name} has {length} lines"


def test_every_module_says_what_it_is_for():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert not tree.body or ast.get_docstring(tree), f"{path} has no docstring"
