"""Links of organisations over real sockets within one process: order, frames, peers that go and come back."""

from __future__ import annotations

import asyncio

import pytest
from websockets.exceptions import ConnectionClosed

from leeward.adapters.organisations.links import LINKS_OF_ONE, Address, Rules
from leeward.core.members import To, ToAll
from tests.helpers.organisations import CLIENT, CODEC, Call, Echo, Heard, Note, at, dial, eventually, run, running


def test_a_link_carries_messages_both_ways_and_the_peer_needs_no_address_of_the_caller():
    async def work() -> None:
        async with running("north") as north, running("south", addresses={"north": at(north)}) as south:
            south.process.take([To("north", Call(number=1))])
            assert (await south.effects.until(1)) == [Heard("north", Echo(number=1))]
            assert north.effects.all == [Heard("south", Call(number=1))]
            north.process.take([To("south", Note("by itself"))])
            assert (await south.effects.until(2))[1] == Heard("north", Note("by itself"))
            assert north.process.links.open_links() == {"south": 1} and south.traffic.links_opened == 1
            assert (south.traffic.sent, south.traffic.received, south.traffic.bytes_sent > 0) == (1, 2, True)

    run(work)


def test_messages_of_one_moment_share_a_frame_and_keep_their_order():
    async def work() -> None:
        async with running("north") as north, running("south", addresses={"north": at(north)}) as south:
            south.process.take([To("north", Call(number=n)) for n in range(5_000)])
            heard = await south.effects.until(5_000)
            assert [one.message.number for one in heard] == list(range(5_000))
            assert south.traffic.frames_sent == 1 and north.traffic.frames_received == 1
            assert north.traffic.frames_sent <= 2

    run(work)


def test_the_same_messages_to_several_peers_are_framed_once_and_keep_their_order_among_others():
    async def work() -> None:
        async with running("north") as north, running("south") as south:
            addresses = {
                name: Address(url=one.process.url, token=CLIENT) for name, one in (("north", north), ("south", south))
            }
            async with running("client", addresses=addresses) as client:
                both = ("north", "south")
                client.process.take([ToAll(both, Note("0")), To("north", Note("only"))])  # no link is there yet
                await asyncio.gather(north.effects.until(2), south.effects.until(1))
                frames = client.traffic.frames_sent
                client.process.take([ToAll(both, Note("1")), ToAll(both, Note("2")), To("south", Note("between"))])
                client.process.take([ToAll(both, Note("3"))])
                heard = await asyncio.gather(north.effects.until(5), south.effects.until(5))
        told = [[one.message.text for one in effects] for effects in heard]
        assert told == [["0", "only", "1", "2", "3"], ["0", "1", "2", "between", "3"]]
        assert client.traffic.frames_sent - frames <= 4 and client.traffic.sent == 10
        assert client.traffic.dropped.total() == 0

    run(work)


def test_a_member_that_is_not_known_does_not_keep_the_message_from_the_others():
    async def work() -> None:
        async with running("north") as north:
            addresses = {"north": Address(url=north.process.url, token=CLIENT)}
            async with running("client", addresses=addresses) as client:
                client.process.take([ToAll(("north", "nobody"), Note("all"))])
                (heard,) = await north.effects.until(1)
        assert heard.message == Note("all") and client.traffic.dropped["unknown"] == 1

    run(work)


def test_a_peer_is_known_from_when_its_address_is():
    async def work() -> None:
        async with running("north") as north, running("client") as client:
            client.process.take([To("north", Note("1"))])  # it may call, but has no link
            client.process.links.know("north", Address(url=north.process.url, token=CLIENT))
            client.process.take([To("north", Note("2"))])
            heard = await north.effects.until(2)
        assert [one.message.text for one in heard] == ["1", "2"]

    run(work)


def test_messages_gather_for_a_while_if_they_may_and_frames_stay_below_their_limit():
    async def work() -> None:
        rules = Rules(gather_s=0.05, largest=20_000)
        async with (
            running("north", rules=rules) as north,
            running("south", addresses={"north": at(north)}, rules=rules) as south,
        ):
            south.process.take([To("north", Note("opens"))])
            await north.effects.until(1)
            for _ in range(10):
                south.process.take([To("north", Note("x" * 100))])
                await asyncio.sleep(0.001)
            await north.effects.until(11)
            assert south.traffic.frames_sent == 2
            south.process.take([To("north", Note("x" * 9_000)) for _ in range(10)])
            await north.effects.until(21)
            assert south.traffic.frames_sent == 7, "two of them fit"
            south.process.take([To("north", Note("x" * 20_000)), To("nobody", Note("")), To("north", "no kind")])
            assert south.traffic.dropped == {"oversize": 1, "unknown": 1, "failed": 1}

    run(work)


def test_a_peer_that_went_away_and_came_back_is_connected_again_and_gets_what_waited():
    async def work() -> None:
        rules = Rules(retry_s=0.02)
        async with running("north") as north:
            port, address = north.process.port, at(north)
            leaving = running("south", addresses={"north": address}, rules=rules)
            south = await leaving.__aenter__()
            south.process.take([To("north", Call(number=1))])
            await south.effects.until(1)
        await eventually(lambda: not south.process.links.open_links())
        south.process.take([To("north", Call(number=2))])
        await eventually(lambda: south.traffic.unopened["away"] >= 2)
        assert south.process.links.waiting() == {"north": 1}
        async with running("north", port=port) as north:
            assert (await south.effects.until(2))[1] == Heard("north", Echo(number=2))
            await leaving.__aexit__(None, None, None)

    run(work)


def test_too_many_messages_for_a_peer_that_is_away_push_out_the_oldest():
    async def work() -> None:
        async with running("north", rules=Rules(waiting=10, waiting_bytes=1_000)) as north:
            north.process.take([To("south", Note("x" * 300)) for _ in range(5)])
            assert north.process.links.waiting() == {"south": 3} and north.traffic.dropped["unsent"] == 2
            north.process.take([To("south", Note(str(n))) for n in range(25)])
            assert north.process.links.waiting() == {"south": 10} and north.traffic.counts()["dropped_unsent"] == 20
            async with running("south", addresses={"north": at(north)}) as south:
                south.process.take([To("north", Note("here"))])
                heard = await south.effects.until(10)
                assert [one.message.text for one in heard] == [str(n) for n in range(15, 25)]

    run(work)


def test_answers_go_over_the_newest_link_and_only_so_many_stay_open():
    async def work() -> None:
        async with running("north") as north:
            links = []
            for n in range(LINKS_OF_ONE + 1):
                links.append(await dial(north))
                await links[-1].send(CODEC.frame([CODEC.pack(Call(number=n))]))
                assert CODEC.open(await links[-1].recv()).messages == [Echo(number=n)]
            with pytest.raises(ConnectionClosed) as closed:
                await links[0].recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
            await links.pop().close()
            await eventually(lambda: north.process.links.open_links() == {"client": LINKS_OF_ONE - 1})
            north.process.take([To("client", Note("still"))])
            assert CODEC.open(await links[-1].recv()).messages == [Note("still")]
            for link in links:
                await link.close()

    run(work)
