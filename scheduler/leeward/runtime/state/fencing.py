"""Writes of a sink that its successor has outdated are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import redis

from leeward.core.errors import FencedError

_FENCED = files("leeward.runtime").joinpath("lua/fenced.lua").read_text()
_APPEND_ONCE = files("leeward.runtime").joinpath("lua/append_once.lua").read_text()


@dataclass(frozen=True, slots=True, order=True)
class FencingToken:
    """Grows whenever a task's work is given to another process. A store that has seen a newer one refuses the older."""

    base: int  #: epoch of the last restore: processes of an older base are outdated
    epoch: int  #: newest handover that this task has passed since (0: none)


class FencedRedis:
    """Commands to the topology's Redis under a fencing token."""

    def __init__(self, client: redis.Redis, topology_id: str) -> None:
        self._script = client.register_script(_FENCED)
        self._append_once = client.register_script(_APPEND_ONCE)
        self._base = f"leeward:{topology_id}:base"

    def execute(self, token: FencingToken, command: str, *arguments: Any, keys: tuple[str, ...] = ()) -> Any:
        """Redis' answer. `keys`: those that the command names. Raises FencedError if the writer was replaced."""
        return self._fenced(self._script, [self._base, *keys], [token.base, command, *arguments])

    def append_once(
        self, token: FencingToken, stream: str, name: str, fields: Mapping[str, Any], *, keep: int, remember: int
    ) -> bool:
        """Append an entry to a stream; False if one was appended under this name before, as after a restore.

        The stream keeps about `keep` entries; `remember` names are in the sorted set STREAM:names. Raises FencedError.
        """
        pairs = [word for pair in fields.items() for word in pair]
        keys = [self._base, stream, f"{stream}:names"]
        return bool(self._fenced(self._append_once, keys, [token.base, name, keep, remember, *pairs]))

    def _fenced(self, script: Any, keys: list[str], arguments: list[Any]) -> Any:
        try:
            return script(keys=keys, args=arguments)
        except redis.ResponseError as error:
            if "FENCED" not in str(error):
                raise
            raise FencedError(
                f"a sink of base {arguments[0]} may not write: {error}.",
                remedy="Nothing is to be done: a newer process writes this result.",
            ) from None
