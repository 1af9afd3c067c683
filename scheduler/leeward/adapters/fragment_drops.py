"""Deletes fragments of cuts that the coordinator has dropped, at all agents that may have some."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from leeward.core.errors import LeewardError
from leeward.wire.fragments import ALL_CUTS, AgentClient

log = logging.getLogger(__name__)

#: To reach an agent, s.
TIMEOUT_S = 3.0


class FragmentDrops:
    """Asks in threads of its own: the coordinator does not wait for an agent that is away.

    Such an agent keeps what it has until the next cut is dropped, which names all cuts before it, too.
    """

    def __init__(self, secret: bytes, timeout_s: float = TIMEOUT_S) -> None:
        self._secret, self._timeout_s = secret, timeout_s
        self._busy: set[tuple[str, str]] = set()  # agent and topology that a thread is asking about
        self._lock = threading.Lock()

    def drop(self, agents: Iterable[str], topology: str, below: int = ALL_CUTS, *, wait: bool = False) -> None:
        """Fragments of cuts below this number; `wait`: until all agents have answered, or are known to be away."""
        threads = [
            threading.Thread(target=self._drop, args=(agent, topology, below), name="leeward-drop", daemon=True)
            for agent in sorted(agents)
            if self._begin(agent, topology) or wait
        ]
        for thread in threads:
            thread.start()
        for thread in threads if wait else ():
            thread.join()

    def _begin(self, agent: str, topology: str) -> bool:
        with self._lock:
            free = (agent, topology) not in self._busy
            self._busy.add((agent, topology))
            return free

    def _drop(self, agent: str, topology: str, below: int) -> None:
        try:
            client = AgentClient(agent, self._secret, self._timeout_s)
            try:
                client.drop(topology, below)
            finally:
                client.close()
        except (OSError, ValueError, LeewardError) as error:
            log.info("agent %s keeps old fragments of %s: %s", agent, topology, error)
        finally:
            with self._lock:
                self._busy.discard((agent, topology))
