"""Swap areas of a node, one folder for each topology: those of topologies that are gone are deleted."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from leeward.core.leftovers import Leftover, reason_to_stay

log = logging.getLogger(__name__)


def drop_gone(area: Path, mine: str, submitted: Callable[[str], bool], now: float) -> list[str]:
    """Delete the folders of topologies that Storm no longer knows; their ids.

    `submitted(id)`: Storm's ZooKeeper has the topology. It has it from submission to the end, wherever its workers are;
    that it has `mine`, which runs, shows that the right place was looked at.
    """
    others = sorted(path for path in area.iterdir() if path.name != mine) if area.is_dir() else []
    if not others or not submitted(mine):
        return []
    gone = [
        path
        for path in others
        if not reason_to_stay(
            path.name, Leftover(swaps=(str(path),), listed=submitted(path.name)), running=(mine,), now=now
        )
    ]
    for path in gone:
        log.info("%s is gone: its swap area is deleted", path.name)
        shutil.rmtree(path, ignore_errors=True)  # other tasks of this node do the same
    return [path.name for path in gone]
