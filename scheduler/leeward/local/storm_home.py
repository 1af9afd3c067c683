"""Fetch Storm's own jars through Maven: a Storm home for local clusters where no release is unpacked."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.local.errors import NotInstalledError
from leeward.local.places import maven_projects

_VERSION = re.compile(r"2\.\d+\.\d+")
_FETCH_S = 900.0


def default_version() -> str:
    """The release that the jars were built and tested against."""
    found = re.search("<storm.version>(.*)</storm.version>", (maven_projects() / "pom.xml").read_text())
    if found is None:
        raise LookupError("pom.xml names no storm.version")
    return found[1]


def fetch(version: str, target: Path, log: Path) -> None:
    """Put a release's `lib` and `lib-worker` into `target`, whole or not at all; Maven's output goes to `log`.

    Raises ConfigError for a release that is no Storm 2.x, NotInstalledError without Maven or if it fails.
    """
    if not _VERSION.fullmatch(version):
        raise ConfigError(
            f"storm_version: {version!r} is no release of Storm 2.", remedy=f"Write e.g. {default_version()}."
        )
    if shutil.which("mvn") is None:
        raise NotInstalledError(
            "mvn: not on PATH, so Storm's jars cannot be fetched.",
            remedy="Install Maven and a JDK, or unpack a Storm release and set STORM_HOME to its folder.",
        )
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    # a copy, as Maven writes beside its project files
    with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
        projects = shutil.copytree(maven_projects(), Path(folder, "storm"), ignore=shutil.ignore_patterns("target"))
        command = ["mvn", "-B", "-ntp", "-f", str(projects / "pom.xml"), "-Dassembly"]
        command += [f"-Dstorm.version={version}", f"-Dstorm.home={part}", "package"]
        try:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=_FETCH_S)
        except subprocess.TimeoutExpired:
            raise NotInstalledError(f"mvn: not done in {_FETCH_S:.0f} s; see {log}.", remedy="Try again.") from None
    if done.returncode != 0:
        errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("[ERROR]")]
        raise NotInstalledError(
            f"mvn: exit code {done.returncode}: {errors[0].removeprefix('[ERROR] ') if errors else 'no error told'}",
            remedy=f"The whole output is in {log}.",
        )
    shutil.rmtree(target, ignore_errors=True)
    part.replace(target)


def make_current(home: Path) -> None:
    """Let local clusters use this home unless they are told another."""
    link = home.with_name("current")
    part = home.with_name("current.part")
    part.unlink(missing_ok=True)
    part.symlink_to(home.name)
    part.replace(link)
