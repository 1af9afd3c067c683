"""The agents next to one of an overlay, for fragments of a task's state. They are asked for each time anew."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from contextlib import suppress

from leeward.core.errors import ClusterRefusedError, LeewardError
from leeward.wire.fragments import AgentClient

log = logging.getLogger(__name__)

#: To connect to the agent that is asked, and for its answer, s.
ASK_S = 3.0


class Nearby:
    """`asked`: agents that know those next to them, one after another until one answers. `node`: this task's own, whose
    agents are left out, as they would fail with it."""

    def __init__(self, asked: Sequence[str], secret: bytes, *, node: str = "", ask_s: float = ASK_S) -> None:
        self._asked, self._secret, self._ask_s = tuple(asked), secret, ask_s
        self._own = {node}
        with suppress(OSError):  # agents tell addresses, and the node may be a name
            self._own.add(socket.gethostbyname(node))
        self._last: tuple[str, ...] = ()

    def find(self) -> tuple[str, ...]:
        """Their addresses, the nearest first; the newest known ones while none of `asked` answers.

        Raises ClusterRefusedError if none has ever answered.
        """
        failures = []
        for address in self._asked:
            try:
                client = AgentClient(address, self._secret, self._ask_s)
                try:
                    found = client.near()
                finally:
                    client.close()
            except (OSError, LeewardError) as error:
                failures.append(f"agent {address}: {error}")
                continue
            others = tuple(one for one in dict.fromkeys(found) if one.rpartition(":")[0] not in self._own)
            if others:  # an agent that has just started knows nobody yet
                self._last = others
                return others
            failures.append(f"agent {address}: it knows no other agent that keeps fragments")
        if not self._last:
            raise ClusterRefusedError(
                f"no agent tells those near it ({'; '.join(failures)}).",
                remedy="Start those that leeward.state.agents names, with `leeward overlay serve --fragments`.",
            )
        log.warning("the agents near are those of before (%s)", "; ".join(failures))
        return self._last
