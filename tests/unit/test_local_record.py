"""cluster.json and the run folder: what is written is read again; what is not ours is left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from leeward.local.errors import FolderError
from leeward.local.preflight import claim_folder, empty_folder
from leeward.local.processes import Process, process_of
from leeward.local.record import read_record, record_path, write_record
from tests.helpers.records import record_in


def test_what_is_written_is_read_again(tmp_path: Path):
    record = record_in(tmp_path)
    write_record(record)
    assert read_record(tmp_path) == record
    assert record_path(tmp_path).stat().st_mode & 0o077 == 0, "settings may be anything"


def test_after_a_boot_no_process_is_ours(tmp_path: Path):
    write_record(record_in(tmp_path))
    values = json.loads(record_path(tmp_path).read_text())
    record_path(tmp_path).write_text(json.dumps(values | {"boot": "an earlier one"}))
    assert read_record(tmp_path).daemons == {}


def test_a_newer_version_is_refused(tmp_path: Path):
    write_record(record_in(tmp_path))
    values = json.loads(record_path(tmp_path).read_text())
    record_path(tmp_path).write_text(json.dumps(values | {"version": 3}))
    with pytest.raises(FolderError, match="version 3, this program reads 2"):
        read_record(tmp_path)


def test_without_a_cluster_the_remedy_is_named(tmp_path: Path):
    with pytest.raises(FolderError, match=r"no cluster runs in .*leeward cluster up --dir"):
        read_record(tmp_path)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match="holds other files"):
        claim_folder(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_a_folder_of_a_dead_cluster_is_taken_over_and_emptied(tmp_path: Path):
    claim_folder(tmp_path)
    write_record(record_in(tmp_path, process=Process(os.getpid(), 1)))
    (tmp_path / "zookeeper").mkdir()
    (tmp_path / "zookeeper" / "log.1").touch()
    claim_folder(tmp_path)
    empty_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".leeward-cluster"]


def test_a_running_cluster_is_not_started_over(tmp_path: Path):
    claim_folder(tmp_path)
    me = process_of(os.getpid())
    assert me is not None
    write_record(record_in(tmp_path, process=me))
    with pytest.raises(FolderError, match=r"a cluster runs in .*\(nimbus\).*leeward cluster down"):
        claim_folder(tmp_path)
