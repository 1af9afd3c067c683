"""The links of a member: what goes to one peer, alone or with others, arrives once and in its order."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from leeward.adapters.organisations.channels import GoneError
from leeward.adapters.organisations.frames import Codec
from leeward.adapters.organisations.links import Links, Rules

PEERS = ("a", "b", "c", "d", "e")


class Note(msgspec.Struct, frozen=True):
    """A message."""

    number: int


class Pipe:
    """A channel in memory, as a connection of ours: while its peer is slow, one frame is on its way at most."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self._ready, self._gone = asyncio.Event(), asyncio.Event()
        self._ready.set()

    def slow(self, *, is_slow: bool) -> None:
        """Whether the peer does not read."""
        if is_slow:
            self._ready.clear()
        else:
            self._ready.set()

    async def send(self, frame: bytes) -> None:
        """See Channel."""
        self.frames.append(frame)
        await self._ready.wait()

    def write(self, wire: bytes) -> bool:
        """See Channel; the mask is taken off again."""
        if not self._ready.is_set():
            return False
        length, head = wire[1] & 127, 2
        if length == 126:
            length, head = int.from_bytes(wire[2:4]), 4
        mask, body = wire[head : head + 4], wire[head + 4 :]
        assert len(body) == length
        self.frames.append(bytes(byte ^ mask[place % 4] for place, byte in enumerate(body)))
        return True

    async def receive(self) -> bytes | None:
        """See Channel."""
        await self._gone.wait()
        raise GoneError("closed")

    async def close(self, code: int, reason: str) -> None:
        """See Channel."""
        self._gone.set()


acts = st.one_of(
    st.tuples(st.just("all"), st.none()),
    st.tuples(st.sampled_from(("one", "slow", "ready")), st.sampled_from(PEERS)),
    st.tuples(st.just("turns"), st.integers(1, 4)),
)


@given(st.lists(acts, max_size=40), st.integers(1, 5))
def test_messages_to_all_and_to_one_keep_their_order_at_each_peer(acts: list[tuple[str, str | int]], turn: int):
    async def work() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        links = Links(
            (Note,), lambda *_: None, callers=frozenset(PEERS), addresses={}, rng=Random(0), rules=Rules(turn=turn)
        )
        pipes = {name: Pipe() for name in PEERS}
        serving = [asyncio.create_task(links.serve(name, pipe)) for name, pipe in pipes.items()]
        await asyncio.sleep(0)
        sent: dict[str, list[int]] = {name: [] for name in PEERS}
        for number, (act, value) in enumerate(acts):
            if act == "all":
                links.send_all(PEERS, Note(number))
                for numbers in sent.values():
                    numbers.append(number)
            elif act == "one":
                links.send(str(value), Note(number))
                sent[str(value)].append(number)
            elif act == "turns":
                for _ in range(int(value)):
                    await asyncio.sleep(0)
            else:
                pipes[str(value)].slow(is_slow=act == "slow")
        for pipe in pipes.values():
            pipe.slow(is_slow=False)
        await links.close()
        await asyncio.gather(*serving)
        codec = Codec((Note,))
        came = {
            name: [note.number for frame in pipe.frames for note in codec.open(frame).messages]
            for name, pipe in pipes.items()
        }
        assert links.traffic.sent == sum(map(len, sent.values())) and not links.traffic.dropped.total()
        return sent, came

    sent, came = asyncio.run(work())
    assert came == sent
