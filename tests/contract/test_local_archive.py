"""The class-data archive of workers, made and used by a real JVM."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.local import archive
from leeward.local.archive import LOG_WRITER, RAN, WORKER, longest, options
from leeward.local.install import find_install

JDK = ("java/lang/Object", "java/util/regex/Pattern", "java/util/zip/ZipFile")
LISTED = "-XX:DumpLoadedClassList="


@pytest.fixture
def install(tmp_path):
    home = tmp_path / "storm"
    (home / "lib-worker").mkdir(parents=True)
    with zipfile.ZipFile(home / "lib-worker" / "a.jar", "w") as jar:
        jar.writestr("nothing.txt", "")
    return replace(find_install(plugin=False), kept=tmp_path, storm_home=home)


def listed(option: str, worker: str, *, ran: bool = True, end: str = "\n") -> None:
    """As a worker does it; the rest of a line may be missing."""
    path = Path(option.removeprefix(LISTED).replace("%WORKER-ID%", worker))
    path.write_text("\n".join([*JDK, *([RAN] if ran else [])]) + end)


def source(install, option: str) -> str:
    """Where a JVM with this option takes java.lang.Object from."""
    jars = f"{install.storm_home}/lib-worker/*"
    command = [install.java, option, "-XX:+UseSerialGC", "-Xlog:class+load", "-cp", jars]
    done = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True)
    return next(line.partition("source: ")[2] for line in done.stdout.splitlines() if "java.lang.Object " in line)


def test_workers_list_their_classes_until_there_is_an_archive_of_them(install):
    said: list[str] = []
    found = options(install, said.append)
    option = found[WORKER]
    assert list(found) == [WORKER] and option.startswith(LISTED) and option.endswith("/%WORKER-ID%.classes")
    listed(option, "w1", ran=False)
    assert options(install, said.append) == found, "no Python bolt ran there"
    listed(option, "w2")
    made = options(install, said.append)[WORKER]
    file = Path(made.removeprefix("-XX:SharedArchiveFile="))
    assert file.exists() and said == ["classes of the workers: archived"]
    assert {path.suffix for path in file.parent.iterdir()} == {".jsa", ".classes"}
    assert source(install, made) == "shared objects file"
    assert options(install, said.append) == {WORKER: made, LOG_WRITER: made} and len(said) == 1, "it is made once"


def test_an_archive_is_not_used_for_other_jars_and_a_missing_one_does_no_harm(install):
    listed(options(install)[WORKER], "w1")
    made = options(install)[WORKER]
    assert source(install, made + ".gone") == "jrt:/java.base"
    jars = install.storm_home / "lib-worker"
    (jars / "b.jar").write_bytes((jars / "a.jar").read_bytes())
    listed(options(install)[WORKER], "w1")
    assert options(install)[WORKER] != made
    assert not Path(made.removeprefix("-XX:SharedArchiveFile=")).exists(), "nobody needs it any more"


def test_what_cannot_be_archived_is_told_and_the_cluster_starts_without(install, monkeypatch):
    option, said = options(install), []
    listed(option[WORKER], "w1")
    monkeypatch.setattr(archive, "MAKING_S", 0.0)
    assert options(install, said.append) == option
    assert said[0].startswith("classes of the workers: not archived: ") and "timed out" in said[0]


def test_a_folder_with_a_space_gets_none(install, tmp_path):
    assert options(replace(install, kept=tmp_path / "my project")) == {}


def test_the_last_line_of_a_list_may_be_cut_off(tmp_path):
    (tmp_path / "a.classes").write_text(f"java/lang/Object\n{RAN}\njava/util/reg")
    assert longest(tmp_path.glob("*")) == f"java/lang/Object\n{RAN}"
    (tmp_path / "b.classes").write_text("java/lang/Object\n" * 99)
    assert longest(tmp_path.glob("*")) == f"java/lang/Object\n{RAN}"
