"""The software under a local cluster: the checkout, Storm's home, Java, Redis, the virtual environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.local.errors import NotInstalledError

SETUP = "Run `make setup`."
JAVA_MIN = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """Paths of programs and files, all checked to exist."""

    #: the checkout: storm_conf/, topologies/, src/
    checkout: Path
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
    root = checkout()
    home = find_storm_home(root, storm_home)
    python_bin = Path(sys.executable).parent
    if not (python_bin / "streamparse_run").exists():
        raise NotInstalledError(f"streamparse_run: not in {python_bin}.", remedy=f"{SETUP} Use .venv/bin/leeward.")
    return Install(
        checkout=root,
        storm_home=home,
        storm_version=storm_version(home),
        java=find_java(),
        redis_server=find_program("redis-server"),
        python_bin=python_bin,
        plugin_jar=find_plugin(root, home) if plugin else None,
    )


def checkout() -> Path:
    """The project's root folder (this package is installed editable). Raises NotInstalledError elsewhere."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "storm_conf" / "storm.yaml").exists():
        raise NotInstalledError(
            f"storm_conf/storm.yaml: not below {root}.", remedy="Run it from a checkout of the project."
        )
    return root


def find_storm_home(root: Path, given: Path | None) -> Path:
    """The given install, else the one that set-up made. Links are resolved: workers outlive a new set-up."""
    if given is None:
        current = root / ".storm" / "current"
        if not (current / "lib").is_dir():
            raise NotInstalledError(f"Storm's jars: not in {current}.", remedy=SETUP)
        return current.resolve()
    home = Path(given).resolve()
    for folder, jar in (("lib", "storm-server"), ("lib-worker", "storm-client")):
        if not list((home / folder).glob(f"{jar}-*.jar")):
            raise ConfigError(f"storm_home: {given} has no {folder}/{jar}-*.jar.", remedy="Name a Storm 2.x install.")
    return home


def storm_version(home: Path) -> str:
    """Release of a Storm home, as in the name of its server jar."""
    return min((home / "lib").glob("storm-server-*.jar")).stem.removeprefix("storm-server-")


def find_plugin(root: Path, home: Path) -> Path:
    """Our plugin in this home, else the one built in this checkout."""
    places = (home / "extlib-daemon" / "leeward-plugin.jar", root / "build" / "jars" / "leeward-plugin.jar")
    for jar in places:
        if jar.exists():
            return jar
    raise NotInstalledError(f"scheduler plugin: no {places[1]}.", remedy=f"{SETUP} Or pass --no-plugin.")


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
        raise NotInstalledError(f"{name}: not on PATH.", remedy=SETUP)
    return Path(found)
