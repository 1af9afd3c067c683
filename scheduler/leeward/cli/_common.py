"""Names that several commands share."""

from __future__ import annotations

from pathlib import Path

from leeward.local.places import written

DEFAULT_DIR = written("cluster", here=Path.cwd())
#: Every command finds the cluster by these two, so one shell may have a cluster beside another's.
CLUSTER_VARIABLE, BASE_PORT_VARIABLE = "LEEWARD_CLUSTER", "LEEWARD_BASE_PORT"
