"""Files go where the user's project or XDG says, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leeward.local import places


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The package as a wheel leaves it, and the user's home."""
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "env" / "lib" / "leeward")
    return tmp_path / "home"


def test_a_checkout_keeps_its_files(monkeypatch, tmp_path):
    (tmp_path / "storm").mkdir()
    (tmp_path / "storm" / "pom.xml").touch()
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "scheduler" / "leeward")
    assert places.kept() == tmp_path / ".storm"
    assert places.jars() == tmp_path / "build" / "jars"
    assert places.web() == tmp_path / "build" / "web"
    assert places.storm_conf() == tmp_path / "storm_conf"
    assert places.written("cluster", here=tmp_path) == Path("out", "cluster")
    assert places.written("cluster", here=tmp_path / "docs") == tmp_path / "out" / "cluster"


def test_a_wheel_has_its_files_inside_and_keeps_others_in_the_users_cache(installed):
    assert places.jars() == places.PACKAGE / "shipped" / "jars"
    assert places.web() == places.PACKAGE / "shipped" / "web"
    assert places.storm_conf() == places.PACKAGE / "shipped" / "storm_conf"
    assert places.kept({"HOME": str(installed)}) == installed / ".cache" / "leeward"
    assert places.kept({"HOME": str(installed), "XDG_CACHE_HOME": "/c"}) == Path("/c/leeward")
    # the XDG specification: a relative path is ignored
    assert places.kept({"HOME": str(installed), "XDG_CACHE_HOME": "c"}) == installed / ".cache" / "leeward"


def test_a_streamparse_project_has_a_folder_of_its_own(installed, tmp_path):
    project = tmp_path / "project"
    (project / "src" / "bolts").mkdir(parents=True)
    (project / "src" / "config.json").write_text(json.dumps({"other": 1}))
    (project / "config.json").write_text(json.dumps({"envs": {}}))
    for here in (project, project / "src" / "bolts"):
        assert places.written("cluster", here=here) == project / ".leeward" / "cluster"


def test_elsewhere_it_is_the_users_state_folder(installed, tmp_path):
    here, environment = tmp_path / "empty", {"HOME": str(installed)}
    assert places.written("cluster", here=here, environment=environment) == installed / ".local/state/leeward/cluster"
    environment["XDG_STATE_HOME"] = "/s"
    assert places.written("cluster", here=here, environment=environment) == Path("/s/leeward/cluster")


def test_git_does_not_see_what_is_written_in_a_project(tmp_path):
    places.make_folder(tmp_path / ".leeward" / "cluster")
    assert (tmp_path / ".leeward" / ".gitignore").read_text() == "*\n"
    places.make_folder(tmp_path / "else")
    assert not (tmp_path / "else" / ".gitignore").exists()
