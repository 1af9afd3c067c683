"""Letters of a policy to one peer over datagrams (`adapters/datagrams.py`), from the thread that plans."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

from leeward.adapters.datagrams import Address, DatagramClient, host_towards, number_of
from leeward.core.peers import Letter

#: Between two exchanges, s: peers need time to decide.
PAUSE_S = 0.05
#: A letter is sent so often, and an answer waited for so long each time, s.
TRIES, PATIENCE_S = 3, 0.4


class DatagramPost:
    """See the module. All letters go to the peer at `address`, whatever their number."""

    def __init__(self, kinds: Sequence[type], address: Address, key: bytes) -> None:
        self._kinds, self._address, self._key = kinds, address, key
        self._to = number_of(*address)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="leeward-post", daemon=True).start()
        self._client: DatagramClient | None = None
        self._next = 0.0

    def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
        """Send them in order; (peer, answer) of each that came, also of one that came too late before."""
        time.sleep(max(0.0, self._next - time.monotonic()))
        found = asyncio.run_coroutine_threadsafe(self._exchange(letters), self._loop).result()
        self._next = time.monotonic() + PAUSE_S
        return found

    async def _exchange(self, letters: Sequence[Letter]) -> list[tuple[int, Any]]:
        if self._client is None:
            self._client = await DatagramClient(self._kinds, self._key).open(host_towards(self._address[0]))
        found: list[tuple[int, Any]] = []
        for letter in letters:
            while not self._client.received.empty():  # of letters before: each answer says what it is about
                found.append((letter.to, self._client.received.get_nowait()))
            for _ in range(TRIES if letter.answered else 1):
                self._client.send(self._to, letter.message)
                if not letter.answered:
                    break
                try:
                    answer = await asyncio.wait_for(self._client.received.get(), PATIENCE_S)
                except TimeoutError:
                    continue
                found.append((letter.to, answer))
                break
        return found

    def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._loop.call_soon_threadsafe(self._client.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
