"""Hatch's build hook: files from outside the package that a wheel ships; `local/places.py` finds them.

Not by a setting, as an editable installation would take them too: in a checkout they stay where they are edited and
built, and before the first set-up there are no jars and no uPlot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JARS = ("plugin", "worker")
#: uPlot, for the live pages.
WEB = ("uPlot.iife.min.js", "uPlot.min.css", "LICENSE")
SHIPPED = {
    "storm_conf": "storm_conf",
    "topologies/quickstart": "quickstart",
    "storm/pom.xml": "storm/pom.xml",
    "storm/assembly/daemon/pom.xml": "storm/assembly/daemon/pom.xml",
    "storm/assembly/worker/pom.xml": "storm/assembly/worker/pom.xml",
    **{f"build/jars/leeward-{name}.jar": f"jars/leeward-{name}.jar" for name in JARS},
    **{f"build/web/{name}": f"web/{name}" for name in WEB},
}


class ShippedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Adds them to `leeward/shipped` of a wheel, and jars and uPlot to a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a build; `version` is "standard" or "editable". Raises FileNotFoundError before the set-up."""
        if version == "editable":
            return
        missing = [path for path in SHIPPED if not Path(self.root, path).exists()]
        if missing:
            raise FileNotFoundError(f"{missing[0]} is missing. Run make wheel, which builds and fetches them first.")
        wheel = self.target_name == "wheel"
        build_data["force_include"].update(
            {path: f"leeward/shipped/{inside}" for path, inside in SHIPPED.items()}
            if wheel
            else {path: path for path in SHIPPED if path.startswith("build/")}
        )
