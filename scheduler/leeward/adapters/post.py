"""Letters of a policy to peers, over TCP (`adapters/peers.py`), from the thread that plans."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leeward.core.errors import ConfigError, LeewardError
from leeward.core.peers import Directory, Letter

if TYPE_CHECKING:
    from leeward.adapters.peers import PeerClient

#: Between two exchanges, s: peers need time to decide.
PAUSE_S = 0.05
#: A peer that has not answered for so long gives no answer, s; and it is left alone for `AWAY_S`.
PATIENCE_S, AWAY_S = 1.0, 10.0


class PeerPost:
    """See the module. Connections are kept; those of a peer that does not answer are opened anew."""

    def __init__(self, directory: Directory) -> None:
        """Raises ConfigError for a directory without peers."""
        if not directory.addresses:
            raise ConfigError(
                "the policy asks the agent beside its service, and there is none.",
                remedy="Let that agent run the service; see the page of the policy's system.",
            )
        self._directory = directory
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="leeward-post", daemon=True).start()
        self._clients: dict[int, PeerClient] = {}
        self._away: dict[int, float] = {}  # server -> until when
        self._next, self._number = 0.0, 0

    def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
        """Send them in order; (server, answer) of each that came."""
        time.sleep(max(0.0, self._next - time.monotonic()))
        found = asyncio.run_coroutine_threadsafe(self._exchange(letters), self._loop).result()
        self._next = time.monotonic() + PAUSE_S
        return found

    async def _exchange(self, letters: Sequence[Letter]) -> list[tuple[int, Any]]:
        found = []
        for letter in letters:
            if self._away.get(letter.to, 0.0) > time.monotonic():
                continue
            try:
                answer = await asyncio.wait_for(self._carry(letter), PATIENCE_S)
            except (TimeoutError, OSError, EOFError, LeewardError):
                self._clients.pop(letter.to).close()
                self._away[letter.to] = time.monotonic() + AWAY_S
                continue
            if letter.answered:
                found.append((letter.to, answer))
        return found

    async def _carry(self, letter: Letter) -> Any:
        client = self._client(letter.to)
        if letter.answered:
            return await client.ask(letter.to, letter.message)
        return await client.send(letter.to, letter.message)

    def _client(self, server: int) -> PeerClient:
        """One for each server and connection, with a number of its own, as a server answers to the newest of it."""
        from leeward.adapters.peers import PeerClient  # its frames need msgspec, which a service without peers does not

        if server not in self._clients:
            self._number += 1
            number = -(os.getpid() * 1000 + self._number % 1000)
            here = self._directory
            self._clients[server] = PeerClient(here.kinds, here.addresses, here.key, number=number)
        return self._clients[server]
