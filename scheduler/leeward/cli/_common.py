"""Names that several commands share."""

from __future__ import annotations

from pathlib import Path

from leeward.local.places import CLUSTER_VARIABLE, written

__all__ = ["BASE_PORT_VARIABLE", "CLUSTER_VARIABLE", "DEFAULT_DIR", "EXIT_INTERRUPTED"]

DEFAULT_DIR = written("cluster", here=Path.cwd())
#: Every command finds the cluster by these two variables, so one shell may have a cluster beside another's.
BASE_PORT_VARIABLE = "LEEWARD_BASE_PORT"
#: Exit code of a command that Ctrl-C ended.
EXIT_INTERRUPTED = 130
