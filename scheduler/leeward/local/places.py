"""Where files are: those that the package ships, those kept between runs, and those of one run.

A wheel has jars, `storm_conf`, the project of `leeward quickstart`, the Maven projects that fetch Storm's own jars, and
uPlot in `leeward/shipped` (pyproject.toml says so). In a checkout they stay where they are edited and built.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
#: A project's folder for what Leeward writes; `.gitignore` inside it keeps it out of Git.
PROJECT_FOLDER = ".leeward"
#: Environment variable with the run folder of the cluster that programs and commands use.
CLUSTER_VARIABLE = "LEEWARD_CLUSTER"


def checkout() -> Path | None:
    """The checkout in which the package lies; None if it was installed from a wheel."""
    root = PACKAGE.parents[1]
    return root if (root / "storm" / "pom.xml").exists() else None


def jars() -> Path:
    """Folder of our two jars; a checkout has them after its set-up only."""
    root = checkout()
    return root / "build" / "jars" if root else PACKAGE / "shipped" / "jars"


def web() -> Path:
    """Folder of uPlot, which draws the charts of live pages; a checkout has it after its set-up only."""
    root = checkout()
    return root / "build" / "web" if root else PACKAGE / "shipped" / "web"


def storm_conf() -> Path:
    """Folder of the settings of Storm and its logs, networks and simulated worlds."""
    return (checkout() or PACKAGE / "shipped") / "storm_conf"


def maven_projects() -> Path:
    """Folder of the Maven projects that fetch Storm's jars."""
    return (checkout() or PACKAGE / "shipped") / "storm"


def quickstart() -> Path:
    """Folder of the project that `leeward quickstart` writes."""
    root = checkout()
    return root / "topologies" / "quickstart" if root else PACKAGE / "shipped" / "quickstart"


def kept(environment: Mapping[str, str] = os.environ) -> Path:
    """Folder for Storm's jars, compiled C programs and class archives: all can be made anew."""
    root = checkout()
    return root / ".storm" if root else _xdg(environment, "XDG_CACHE_HOME", ".cache")


def written(name: str, *, here: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Path for a run folder or a result of that name, for a command that is called in the folder `here`.

    In this checkout `out/name`; in a streamparse project `.leeward/name` in its folder; elsewhere the user's state
    folder (XDG_STATE_HOME). Nothing is created.
    """
    root = checkout()
    if root and here == root:
        return Path("out", name)
    if root and root in here.parents:
        return root / "out" / name
    project = project_of(here)
    return (project / PROJECT_FOLDER if project else _xdg(environment, "XDG_STATE_HOME", ".local/state")) / name


def run_folder(here: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The local cluster's, for a program that is called in the folder `here`."""
    given = environment.get(CLUSTER_VARIABLE)
    return Path(given) if given else written("cluster", here=here, environment=environment)


def project_of(folder: Path) -> Path | None:
    """The streamparse project that the folder is in: the nearest config.json with environments."""
    for candidate in (folder, *folder.parents):
        try:
            document = json.loads((candidate / "config.json").read_text())
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and "envs" in document:
            return candidate
    return None


def make_folder(folder: Path) -> None:
    """Create the folder; a project's `.leeward` gets a file that keeps it out of Git."""
    folder.mkdir(parents=True, exist_ok=True)
    for parent in (folder, *folder.parents):
        if parent.name == PROJECT_FOLDER and not (parent / ".gitignore").exists():
            (parent / ".gitignore").write_text("*\n")


def _xdg(environment: Mapping[str, str], variable: str, default: str) -> Path:
    given = environment.get(variable, "")
    # the specification: a path that is not absolute is ignored
    base = Path(given) if given.startswith("/") else Path(environment.get("HOME") or Path.home(), default)
    return base / "leeward"
