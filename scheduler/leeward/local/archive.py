"""Class-data archive of the workers: a JVM that finds its classes parsed and checked in a file starts sooner.

A cluster without an archive lets its workers write down which classes they load. The next start makes an archive of
such a list, once, in a few seconds, and passes it to the workers. It covers the jars of Storm, the head of their class
path; entries behind them (settings, the topology's jar) may differ from worker to worker. A JVM ignores an archive that
is missing, or of other jars or another JVM. (Java could write one when a worker ends, but Storm gives that a second.)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from leeward.local.install import Install

#: Each worker is started by a small JVM that writes its log.
WORKER, LOG_WRITER = "worker.childopts", "topology.worker.logwriter.childopts"
ARCHIVE = "worker.jsa"
#: A list counts if its worker got so far as to run a Python bolt.
RAN = "org/apache/storm/task/ShellBolt"
MAKING_S = 120.0


def options(install: Install, report: Callable[[str], None] = lambda line: None) -> dict[str, str]:
    """Settings, and what to add to each of these JVM options. Makes the archive if there is a list to make it of."""
    folder = install.kept / "classes" / key_of(install)
    if any(map(str.isspace, str(folder))):
        return {}  # Storm parts options at white space
    archive = folder / ARCHIVE
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        classes = longest(folder.glob("*.classes"))
        if classes is None or not make(install, classes, archive, report):
            return {WORKER: f"-XX:DumpLoadedClassList={folder}/%WORKER-ID%.classes"}
    return dict.fromkeys((WORKER, LOG_WRITER), f"-XX:SharedArchiveFile={archive}")


def key_of(install: Install) -> str:
    """Names the JVM and the jars, as the JVM itself compares them: an archive of others would be ignored."""
    digest = hashlib.sha256()
    java = install.java.resolve()
    for path in (java, java.parents[1] / "lib" / "server" / "libjvm.so", *jars(install)):
        about = path.stat() if path.exists() else None
        digest.update(f"{path} {about and (about.st_size, about.st_mtime_ns)}\n".encode())
    return digest.hexdigest()[:16]


def jars(install: Install) -> list[Path]:
    """The head of a worker's class path."""
    return sorted((install.storm_home / "lib-worker").glob("*.jar"))


def longest(lists: Iterable[Path]) -> str | None:
    """The classes of the worker that loaded most; None without one that counts. A line cut off is left out."""
    texts = [path.read_text(errors="replace").rpartition("\n")[0] for path in sorted(lists)]
    return max((text for text in texts if f"\n{RAN}\n" in f"{text}\n"), key=len, default=None)


def make(install: Install, classes: str, archive: Path, report: Callable[[str], None]) -> bool:
    """Whether it could be made; workers start without it, too."""
    draft = archive.with_suffix(f".{os.getpid()}")
    draft_list = draft.with_suffix(f"{draft.suffix}.list")
    draft_list.write_text(classes + "\n")
    command = [str(install.java), "-Xshare:dump", "-Xlog:disable", "-Xlog:all=error", "-XX:+UseSerialGC", "-Xmx256m"]
    command += [f"-XX:SharedClassListFile={draft_list}", f"-XX:SharedArchiveFile={draft}"]
    command += ["-cp", f"{install.storm_home}/lib-worker/*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAKING_S)
        why = done.stdout[-300:] + done.stderr[-300:]
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    made = draft.exists()
    if made:
        draft.replace(archive)
        for other in archive.parent.parent.iterdir():
            if other != archive.parent:
                shutil.rmtree(other, ignore_errors=True)
    report(f"classes of the workers: {'archived' if made else f'not archived: {why}'}")
    draft_list.unlink()
    return made
