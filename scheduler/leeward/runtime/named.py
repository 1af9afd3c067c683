"""Classes that the configuration of a topology names: disciplines of queues, stores of checkpoints.

A worker has no entry points: the packages of a topology's jar are not installed. So a name is looked up when the
topology is submitted, and module and class travel in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from leeward.core.errors import ConfigError
from leeward.core.options import refuse_unknown


def located(name: str, group: str, what: str, *, also: Iterable[str] = ()) -> str:
    """`module:Class` of a name in a group of entry points, as `control/registry.py` finds them.

    `what`: the kind of thing, for people; `also`: other words that may stand there. Raises ConfigError for an unknown
    name, and for one that two packages claim.
    """
    if ":" in name:
        return name
    points = list(entry_points(group=group))
    refuse_unknown(what, {name: group}, sorted({*also, *(point.name for point in points)}))
    found = sorted({point.value for point in points if point.name == name})
    if len(found) > 1:
        raise ConfigError(f"{group}: {name!r} is {' and '.join(found)}.", remedy="Uninstall one of them.")
    return found[0]


def load(where: str, use: str) -> Any:
    """The class `module:Class`; `use`: where it is named, for people. Raises ConfigError if it cannot be imported."""
    module, _, path = where.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{use}, which cannot be loaded ({error}).",
            remedy=f"Put {module} into src/ or into the workers' environment, with {path} in it.",
        ) from error
    return found
