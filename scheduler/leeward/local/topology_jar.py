"""The topology jar: our Java groupings and the Python tree that workers run.

    leeward/grouping/*.class     from build/jars/leeward-worker.jar
    resources/**                 the tree of src/, symlinks followed
    resources/leeward/**         this package, if src/ does not have it

Only of the package `leeward` what a worker needs is in it: the rooms of the runtime, and of the policies' rooms the
modules of disciplines, so that a bolt orders its queue by the very object that the simulator runs, and of routers and
stores, with all that these import of their room. The same input gives the same bytes.
"""

from __future__ import annotations

import ast
import os
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath

from leeward.control.registry import DISCIPLINES, ROUTERS, STORES
from leeward.core.errors import ConfigError
from leeward.local.errors import NotInstalledError
from leeward.local.places import PACKAGE

#: packages of `leeward` that run inside workers
WORKER_PACKAGES = ("core", "runtime", "wire")
SKIPPED = {"__pycache__", "tests", ".pytest_cache", ".ruff_cache"}
#: every entry's time: archives of the same content are equal
EPOCH = (1980, 1, 1, 0, 0, 0)


def build_jar(out: Path, *, src: Path, worker_jar: Path) -> int:
    """Write the jar, whole or not at all; how many entries it has.

    Raises NotInstalledError when the worker jar is not built, ConfigError when src is no folder.
    """
    if not worker_jar.exists():
        raise NotInstalledError(f"worker jar: no {worker_jar}.", remedy="Build it with `make setup`; a wheel has it.")
    if not src.is_dir():
        raise ConfigError(f"src: {src} is no folder.", remedy="Name the folder with the topology's packages.")
    tree = [*python_tree(src), *(() if (src / "leeward").exists() else package_tree())]
    entries = dict(java_classes(worker_jar)) | {f"resources/{name}": path.read_bytes() for name, path in tree}
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.{os.getpid()}.part")  # another process may build the same jar
    try:
        with zipfile.ZipFile(part, "w") as jar:
            for name in sorted(entries):
                info = zipfile.ZipInfo(name, EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                jar.writestr(info, entries[name])
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return len(entries)


def java_classes(worker_jar: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the worker jar but Maven's and the manifest."""
    with zipfile.ZipFile(worker_jar) as jar:
        for name in jar.namelist():
            if not name.endswith("/") and not name.startswith("META-INF/"):
                yield name, jar.read(name)


def python_tree(src: Path) -> Iterator[tuple[str, Path]]:
    """(name below resources/, file) of the tree, symlinks followed."""
    for folder, folders, files in os.walk(src, followlinks=True):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            path = Path(folder, name)
            relative = PurePosixPath(path.relative_to(src).as_posix())
            if not name.endswith(".pyc") and is_for_workers(relative):
                yield str(relative), path


def package_tree() -> Iterator[tuple[str, Path]]:
    """This package's files for workers, as `python_tree` gives those of a tree that it is in."""
    for part in WORKER_PACKAGES:
        for name, path in python_tree(PACKAGE / part):
            yield f"leeward/{part}/{name}", path
    yield "leeward/__init__.py", PACKAGE / "__init__.py"
    for name in sorted(discipline_files() | room_files(ROUTERS) | room_files(STORES)):
        yield name, PACKAGE.parent / name


def is_for_workers(relative: PurePosixPath) -> bool:
    """Everything but those parts of the package `leeward` that only services use."""
    parts = relative.parts
    inside = parts[0] == "leeward" and len(parts) > 2 and parts[1] not in WORKER_PACKAGES
    return not inside or str(relative) in discipline_files() | room_files(ROUTERS) | room_files(STORES)


@cache
def discipline_files() -> frozenset[str]:
    """This package's modules of disciplines, by their entry points, and the packages that they are in."""
    found: set[str] = set()
    for point in entry_points(group=DISCIPLINES):
        *packages, module = point.module.split(".")
        if packages[:1] == ["leeward"]:
            found.add("/".join([*packages, f"{module}.py"]))
            found |= {"/".join([*packages[:depth], "__init__.py"]) for depth in range(2, len(packages) + 1)}
    return frozenset(found)


@cache
def room_files(group: str) -> frozenset[str]:
    """This package's modules of a group of entry points, and those of the same room that they import."""
    found: set[str] = set()
    left = [point.module for point in entry_points(group=group) if point.module.startswith("leeward.")]
    while left:
        *packages, module = left.pop().split(".")
        name = "/".join([*packages, f"{module}.py"])
        if name in found:
            continue
        found |= {name, *("/".join([*packages[:depth], "__init__.py"]) for depth in range(2, len(packages) + 1))}
        room = ".".join(packages[:3])
        nodes = ast.walk(ast.parse((PACKAGE.parent / name).read_text()))
        imported = [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
        left += [module for module in imported if module.startswith(f"{room}.")]
    return frozenset(found)
