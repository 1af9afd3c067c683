"""`leeward quickstart` writes a whole project, and its files are those that the tutorial shows."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from leeward.core.errors import ConfigError
from leeward.local.quickstart import write_project
from tests.helpers.doc_blocks import ROOT, blocks


def test_a_project_is_written_whole(tmp_path):
    project = tmp_path / "my_project"
    written = write_project(project)
    assert {"README.md", ".gitignore", "src/word_bolts.py", "topologies/words.py", "tests/test_words.py"} < set(written)
    assert set(written) == {
        str(path.relative_to(tmp_path / "my_project"))
        for path in (tmp_path / "my_project").rglob("*")
        if path.is_file()
    }
    assert (tmp_path / "my_project" / "README.md").read_text().startswith("# my_project\n")
    assert f"leeward[service]=={version('leeward')}" in (project / "requirements.txt").read_text()
    assert "envs" in json.loads((project / "config.json").read_text())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match=r"mine holds something already\. Give the name of a new folder"):
        write_project(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["README.md"]


@pytest.mark.parametrize("name", ["7up", "a b", "-x"])
def test_a_name_that_streamparse_would_trip_over_is_refused(name, tmp_path):
    with pytest.raises(ConfigError, match="no project name"):
        write_project(tmp_path / name)


def test_the_tutorial_shows_the_projects_files():
    project = ROOT / "topologies" / "quickstart"
    shown = {block.file: block.text for block in blocks(ROOT / "docs" / "tutorial.md") if block.file}
    for name in ("src/word_bolts.py", "topologies/words.py", "look.py"):
        assert shown[name] == f"# {name}\n{Path(project, name).read_text()}"
