"""The topology jar holds what workers need, nothing else, and the same bytes every time."""

from __future__ import annotations

import multiprocessing
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from leeward.core.errors import ConfigError
from leeward.local.errors import NotInstalledError
from leeward.local.topology_jar import build_jar


@pytest.fixture
def worker_jar(tmp_path: Path) -> Path:
    path = tmp_path / "worker.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Built-By: somebody\n")
        jar.writestr("leeward/grouping/KeyedGrouping.class", b"\xca\xfe")
    return path


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """As in the checkout: symlinks to the bolts and to the package."""
    for name in (
        "scheduler/leeward/__init__.py",
        "scheduler/leeward/core/keys.py",
        "scheduler/leeward/core/__pycache__/keys.cpython-311.pyc",
        "scheduler/leeward/runtime/lua/export.lua",
        "scheduler/leeward/policies/__init__.py",
        "scheduler/leeward/policies/edrp/milp/ilp.py",
        "scheduler/leeward/policies/dssp/__init__.py",
        "scheduler/leeward/policies/dssp/disciplines.py",
        "scheduler/leeward/policies/dssp/model/budgets.py",
        "scheduler/leeward/local/data.py",
        "bolts/count.py",
        "bolts/tests/test_count.py",
        "bolts/local/kept.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "bolts").symlink_to("../bolts")
    (folder / "leeward").symlink_to("../scheduler/leeward")
    return folder


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as jar:
        return jar.namelist()


def test_symlinks_are_followed_and_services_stay_out(tmp_path: Path, src: Path, worker_jar: Path):
    out = tmp_path / "build" / "topology.jar"
    assert build_jar(out, src=src, worker_jar=worker_jar) == 9
    assert names(out) == [
        "leeward/grouping/KeyedGrouping.class",
        "resources/bolts/count.py",
        "resources/bolts/local/kept.py",
        "resources/leeward/__init__.py",
        "resources/leeward/core/keys.py",
        "resources/leeward/policies/__init__.py",
        "resources/leeward/policies/dssp/__init__.py",
        "resources/leeward/policies/dssp/disciplines.py",
        "resources/leeward/runtime/lua/export.lua",
    ]


def test_equal_trees_give_equal_bytes(tmp_path: Path, src: Path, worker_jar: Path):
    first, second = tmp_path / "1.jar", tmp_path / "2.jar"
    build_jar(first, src=src, worker_jar=worker_jar)
    for path in (tmp_path / "bolts").rglob("*.py"):
        os.utime(path, (1, 1))
    build_jar(second, src=src, worker_jar=worker_jar)
    assert first.read_bytes() == second.read_bytes()
    (tmp_path / "bolts" / "count.py").write_text("# changed\n")
    build_jar(second, src=src, worker_jar=worker_jar)
    assert first.read_bytes() != second.read_bytes()


def before_the_first_entry(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """`act` is called once, when the jar that is built has its file and nothing in it."""
    write = zipfile.ZipFile.writestr

    def once(*arguments) -> None:
        monkeypatch.setattr(zipfile.ZipFile, "writestr", write)
        act()
        write(*arguments)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", once)


def test_two_builds_at_once_give_two_whole_jars(tmp_path: Path, src: Path, worker_jar: Path, monkeypatch):
    folder = tmp_path / "out"
    out = folder / "topology.jar"
    other = multiprocessing.get_context("fork").Process(target=build_jar, args=(out,), kwargs={
        "src": src, "worker_jar": worker_jar,
    })  # fmt: skip
    built: list[bytes] = []

    def build_another() -> None:
        other.start()
        other.join()
        assert other.exitcode == 0
        built.append(out.read_bytes())

    before_the_first_entry(monkeypatch, build_another)
    build_jar(out, src=src, worker_jar=worker_jar)
    assert built == [out.read_bytes()]
    assert zipfile.ZipFile(out).testzip() is None
    assert list(folder.iterdir()) == [out]


def test_a_build_that_fails_leaves_the_jar_before_it_and_nothing_else(tmp_path, src, worker_jar, monkeypatch):
    folder = tmp_path / "out"
    out = folder / "topology.jar"
    build_jar(out, src=src, worker_jar=worker_jar)
    whole = out.read_bytes()

    def fail() -> None:
        raise OSError("no space left")

    before_the_first_entry(monkeypatch, fail)
    with pytest.raises(OSError, match="no space left"):
        build_jar(out, src=src, worker_jar=worker_jar)
    assert (list(folder.iterdir()), out.read_bytes()) == ([out], whole)


def test_without_the_worker_jar_the_remedy_is_named(tmp_path: Path, src: Path):
    with pytest.raises(NotInstalledError, match=r"no .*none\.jar\. Build it with `make setup`"):
        build_jar(tmp_path / "t.jar", src=src, worker_jar=tmp_path / "none.jar")
    assert not (tmp_path / "t.jar").exists()


def test_a_src_that_is_no_folder_is_refused(tmp_path: Path, worker_jar: Path):
    with pytest.raises(ConfigError, match=r"src: .*nowhere is no folder"):
        build_jar(tmp_path / "t.jar", src=tmp_path / "nowhere", worker_jar=worker_jar)


def test_a_project_without_our_package_gets_what_its_workers_need(tmp_path, worker_jar):
    """A project of a user's own has no link to `leeward` in its src."""
    own = tmp_path / "project" / "src"
    own.mkdir(parents=True)
    (own / "count.py").write_text("")
    build_jar(tmp_path / "topology.jar", src=own, worker_jar=worker_jar)
    found = set(names(tmp_path / "topology.jar"))
    assert {"resources/count.py", "resources/leeward/__init__.py", "resources/leeward/core/keys.py"} <= found
    assert "resources/leeward/runtime/lua/export.lua" in found
    rooms = {name.removeprefix("resources/leeward/policies/") for name in found if "leeward/policies" in name}
    recovery = {
        f"agiledart/recovery/{module}.py" for module in ("__init__", "coding", "fetch", "scheme", "settings", "tuning")
    }
    paths = {f"agiledart/paths/{module}.py" for module in ("__init__", "choices", "estimates", "routers")}
    agiledart = {"agiledart/__init__.py", *paths, *recovery}
    assert rooms == {"__init__.py", "dssp/__init__.py", "dssp/disciplines.py", *agiledart}
    assert not [name for name in found if name.startswith(("resources/leeward/local", "resources/leeward/cli"))]
