"""Nodes of single components, named when a topology is submitted: sources and sinks of an edge stand where they stand.

Example: LEEWARD_PINNED='{"data_source": ["edge-1"], "global_rank": ["cloud-1"]}' leeward submit query1
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import PINNED

VARIABLE = "LEEWARD_PINNED"


def pins(components: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, dict[str, Any]]:
    """Component -> the configuration that pins it to its nodes. Raises ConfigError for what is not such a map."""
    text = environment.get(VARIABLE, "{}")
    try:
        wanted = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{VARIABLE} is {text!r:.80}, no JSON: {error}.", remedy=_REMEDY) from None
    known = sorted(components)
    if not isinstance(wanted, dict) or not all(map(_are_hosts, wanted.values())):
        raise ConfigError(f"{VARIABLE} is {text!r:.80}, no map of component to hosts.", remedy=_REMEDY)
    if unknown := sorted(set(wanted) - set(known)):
        raise ConfigError(f"{VARIABLE} names {unknown[0]!r}, no component.", remedy=f"There are {', '.join(known)}.")
    return {name: {PINNED.name: hosts} for name, hosts in wanted.items()}


def _are_hosts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(host, str) and host for host in value)


_REMEDY = """Write it as {"data_source": ["node-1"]}: a list of hosts for each component that has to stay there."""
