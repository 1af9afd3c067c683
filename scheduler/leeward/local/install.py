"""The software under a local cluster: Storm's home, its plugin, Java, Redis, the virtual environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.local import places
from leeward.local.errors import NotInstalledError

IN_CHECKOUT = places.checkout() is not None
STORM_REMEDY = "Run `make setup`." if IN_CHECKOUT else "Run `leeward cluster install`, or set STORM_HOME."
PROGRAM_REMEDY = "Run `make setup`." if IN_CHECKOUT else "Install it with this system's packages."
JAVA_MIN = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """Paths of programs and files, all checked to exist."""

    #: settings of Storm and of its logs, as shipped
    storm_conf: Path
    #: folder of compiled C programs and class archives, made once
    kept: Path
    #: folder with Storm's lib and lib-worker
    storm_home: Path
    #: Storm's release, from the name of its jar
    storm_version: str
    java: Path
    redis_server: Path
    #: folder of python and streamparse_run, first on the workers' PATH
    python_bin: Path
    #: jar of the scheduler plugin; None when the cluster runs without it
    plugin_jar: Path | None


def find_install(*, storm_home: Path | None = None, plugin: bool = True) -> Install:
    """Look everything up. Raises NotInstalledError naming what is missing, ConfigError for a wrong home."""
    home = find_storm_home(storm_home)
    python_bin = Path(sys.executable).parent
    if not (python_bin / "streamparse_run").exists():
        raise NotInstalledError(f"streamparse_run: not in {python_bin}.", remedy="Install leeward[runtime] there.")
    return Install(
        storm_conf=places.storm_conf(),
        kept=places.kept(),
        storm_home=home,
        storm_version=storm_version(home),
        java=find_java(),
        redis_server=find_program("redis-server"),
        python_bin=python_bin,
        plugin_jar=find_plugin(home) if plugin else None,
    )


def find_storm_home(given: Path | None) -> Path:
    """The given install, else STORM_HOME's, else the one that set-up or `leeward cluster install` made.

    A checkout's set-up has looked at STORM_HOME already. Links are resolved: workers outlive a new set-up.
    """
    if given is None and places.checkout() is None and os.environ.get("STORM_HOME"):
        given = Path(os.environ["STORM_HOME"])
    if given is None:
        current = places.kept() / "current"
        if not (current / "lib").is_dir():
            raise NotInstalledError(f"Storm's jars: not in {current}.", remedy=STORM_REMEDY)
        return current.resolve()
    home = Path(given).resolve()
    for folder, jar in (("lib", "storm-server"), ("lib-worker", "storm-client")):
        if not list((home / folder).glob(f"{jar}-*.jar")):
            raise ConfigError(f"storm_home: {given} has no {folder}/{jar}-*.jar.", remedy="Name a Storm 2.x install.")
    return home


def storm_version(home: Path) -> str:
    """Release of a Storm home, as in the name of its server jar."""
    return min((home / "lib").glob("storm-server-*.jar")).stem.removeprefix("storm-server-")


def find_plugin(home: Path) -> Path:
    """Our plugin in this home, else the one that the package ships."""
    shipped = shipped_jar("plugin")
    for jar in (home / "extlib-daemon" / "leeward-plugin.jar", shipped):
        if jar.exists():
            return jar
    raise NotInstalledError(f"scheduler plugin: no {shipped}.", remedy="Run `make setup`, or pass --no-plugin.")


def shipped_jar(name: str) -> Path:
    """Where the jar for the `worker` or of the `plugin` is shipped; a checkout has it after its set-up only."""
    return places.jars() / f"leeward-{name}.jar"


def find_java() -> Path:
    """JAVA_HOME's java, else the one on PATH. Raises NotInstalledError when it is older than 17."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else find_program("java")
    try:
        text = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotInstalledError(f"java: {java} does not run: {error}.", remedy="Mend JAVA_HOME.") from error
    release = text.split('"')[1].partition("-")[0]
    if int(release.split(".")[0]) < JAVA_MIN:
        raise NotInstalledError(
            f"java: {java} is release {release}.", remedy=f"Set JAVA_HOME to a JDK {JAVA_MIN} or newer."
        )
    return java


def find_program(name: str) -> Path:
    """A program on PATH (or in /usr/sbin). Raises NotInstalledError."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if not found:
        raise NotInstalledError(f"{name}: not on PATH.", remedy=PROGRAM_REMEDY)
    return Path(found)
