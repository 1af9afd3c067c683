"""Leeward's settings in a cluster's own storm.yaml: a block at its end, between two lines that mark it. Pure.

The lines outside the block are the cluster's own and stay as they are, byte by byte. A setting that they have is left
out of the block, as YAML allows a key once; if Leeward needs another value for it, that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from leeward.core.errors import ConfigError

BEGIN = "# >>> leeward: written by `fab deploy`; changes in here are lost"
END = "# <<< leeward"


def own_part(text: str) -> str:
    """The text without Leeward's block."""
    before, begin, rest = text.partition(BEGIN)
    if not begin:
        return text
    return before + rest.partition(END)[2].removeprefix("\n")


def merged(text: str, settings: Mapping[str, object], *, demanded: Mapping[str, object], where: str) -> str:
    """The text with a new block of these settings.

    `demanded` are settings that have to hold, `settings` those that give way to the cluster's own. Raises ConfigError,
    which names the place, the setting, both values and the remedy.
    """
    own = own_part(text)
    try:
        theirs = yaml.safe_load(own) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: is no YAML: {str(error).splitlines()[0]}.", remedy="Mend it.") from None
    if not isinstance(theirs, dict):
        raise ConfigError(f"{where}: is no map of settings.", remedy="Mend it.")
    for name, value in demanded.items():
        if name in theirs and theirs[name] != value:
            raise ConfigError(
                f"{where}: {name} is {theirs[name]!r}, and Leeward needs {value!r}.",
                remedy="Remove the line there, or give the same value in the inventory.",
            )
    block = {name: value for name, value in {**settings, **demanded}.items() if name not in theirs}
    if not block:
        return own
    gap = "" if own.endswith("\n") or not own else "\n"
    return f"{own}{gap}{BEGIN}\n{yaml.safe_dump(block, sort_keys=True, width=10_000)}{END}\n"
