"""Writes of a sink that its successor has outdated are refused."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import redis

from leeward.core.errors import FencedError

_FENCED = files("leeward.runtime").joinpath("lua/fenced.lua").read_text()


@dataclass(frozen=True, slots=True, order=True)
class FencingToken:
    """Grows whenever a task's work is given to another process. A store that has seen a newer one refuses the older."""

    base: int  #: epoch of the last restore: processes of an older base are outdated
    epoch: int  #: newest handover that this task has passed since (0: none)


class FencedRedis:
    """Commands to the topology's Redis under a fencing token."""

    def __init__(self, client: redis.Redis, topology_id: str) -> None:
        self._script = client.register_script(_FENCED)
        self._base = f"leeward:{topology_id}:base"

    def execute(self, token: FencingToken, command: str, *arguments: Any, keys: tuple[str, ...] = ()) -> Any:
        """Redis' answer. `keys`: those that the command names. Raises FencedError if the writer was replaced."""
        try:
            return self._script(keys=[self._base, *keys], args=[token.base, command, *arguments])
        except redis.ResponseError as error:
            if "FENCED" not in str(error):
                raise
            raise FencedError(
                f"a sink of base {token.base} may not write: {error}.",
                remedy="Nothing is to be done: a newer process writes this result.",
            ) from None
