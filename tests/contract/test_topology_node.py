"""Subtasks over a real Redis to a topology and back: the test plays the topology, or its bolts do."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from bolts.sensing.answers import Answers
from bolts.sensing.asks import Asks
from bolts.sensing.sense import Sense, reading
from bolts.sensing.streams import Streams
from leeward.adapters.executors import Executors
from leeward.adapters.topology_node import TopologyNode
from leeward.cli._dssp_domain import _Nodes
from leeward.core.asks import ask_of
from leeward.core.errors import FencedError
from leeward.policies.dssp.model.organisation_files import read_domain
from leeward.runtime import FencedRedis, FencingToken

NORTH = {
    "name": "north", "listen": {"port": 0}, "registry": "http://127.0.0.1:8100", "callers": "c", "tokens": "t",
    "capabilities": ["air"],
}  # fmt: skip
ASKS, ANSWERS = "s:asks", "s:answers"


def order(query: int) -> dict:
    now = time.time()
    return {"query": query, "arrived": now, "due": now + 1, "unloaded": 0.01}


def play(server, body, *, patience_s: float = 5.0):
    """Run `body(node)` with a node on the server."""

    async def run():
        node = TopologyNode(server.url, "s", patience_s=patience_s)
        try:
            return await asyncio.wait_for(body(node), 30)
        finally:
            await node.close()

    return asyncio.run(run())


async def asked(client, count: int) -> list:
    """The asks, once there are so many."""
    while client.xlen(ASKS) < count:
        await asyncio.sleep(0.01)
    return [ask_of(fields) for _, fields in client.xrange(ASKS)]


def answer(client, ask: str, text: str) -> None:
    client.xadd(ANSWERS, {"id": ask, "reading": text})


def test_answers_come_to_their_subtasks_in_whatever_order(server, client):
    answer(client, "of an earlier life", "1.0")

    async def body(node):
        subtasks = [asyncio.create_task(node.reading(order(query))) for query in range(20)]
        found = await asked(client, 20)
        assert len({ask.id for ask in found}) == 20 and sorted(ask.query for ask in found) == [*range(20)]
        assert all(abs(ask.due - ask.arrived - 1) < 1e-5 and ask.unloaded == 0.01 for ask in found)
        for ask in reversed(found):
            answer(client, ask.id, str(ask.query / 4))
        return await asyncio.gather(*subtasks)

    assert play(server, body) == [query / 4 for query in range(20)]


def test_unknown_repeated_and_bad_answers_do_no_harm(server, client):
    async def body(node):
        one, two = (asyncio.create_task(node.reading(order(query))) for query in (1, 2))
        first, second = sorted(await asked(client, 2), key=lambda ask: ask.query)
        answer(client, "somebody else's", "9")
        client.xadd(ANSWERS, {"nothing": "that an answer has"})
        answer(client, first.id, "1.5")
        answer(client, first.id, "2.5")
        answer(client, second.id, "")
        return await one, await two, len(node._open)

    assert play(server, body) == (1.5, None, 0)


def test_without_an_answer_a_subtask_fails_and_a_late_one_is_dropped(server, client):
    async def body(node):
        one = asyncio.create_task(node.reading(order(1)))
        (ask,) = await asked(client, 1)
        assert await one is None
        assert client.xlen(ASKS) == 0  # a topology that was away does not begin with it
        answer(client, ask.id, "1.5")
        two = asyncio.create_task(node.reading(order(2)))
        answer(client, (await asked(client, 1))[0].id, "2.5")
        return await two

    assert play(server, body, patience_s=0.3) == 2.5


def test_while_redis_is_away_subtasks_fail_and_then_go_on(server, client, caplog):
    async def body(node):
        waits = asyncio.create_task(node.reading(order(1)))
        (ask,) = await asked(client, 1)
        server.stop()
        began = time.monotonic()
        assert await node.reading(order(2)) is None and await node.reading(order(3)) is None
        assert time.monotonic() - began < 1
        await asyncio.to_thread(server.start)
        answer(client, ask.id, "1.5")
        assert await waits == 1.5  # it had been handed over
        again = asyncio.create_task(node.reading(order(4)))
        answer(client, (await asked(client, 2))[1].id, "4.5")
        return await again

    assert play(server, body, patience_s=20) == 4.5
    assert "does not take subtasks in" in caplog.text and server.url.split("@")[0] not in caplog.text


MANY = 200  # more than a client of Redis has connections


@asynccontextmanager
async def held_up(client):
    """Each write waits, as on a slow way, until everything that can be attempted has been."""
    client.client_pause(600_000, all=False)
    try:
        yield
        for _ in range(1000):  # turns of the event loop: no slow machine takes them away
            await asyncio.sleep(0)
    finally:
        client.client_unpause()


def test_more_subtasks_than_connections_wait_for_their_turn(server, client):
    async def body(node):
        async with held_up(client):
            subtasks = [asyncio.create_task(node.reading(order(query))) for query in range(MANY)]
        assert not any(subtask.done() for subtask in subtasks)
        for ask in await asked(client, MANY):
            answer(client, ask.id, str(ask.query))
        return await asyncio.gather(*subtasks)

    assert play(server, body, patience_s=25) == [*range(MANY)]


def test_as_many_that_get_no_answer_are_all_taken_out_again(server, client):
    async def body(node):
        subtasks = [asyncio.create_task(node.reading(order(query))) for query in range(MANY)]
        await asked(client, MANY)
        async with held_up(client):
            for waiting in node._open.values():
                waiting.set_exception(TimeoutError())  # as when their time is over
        assert await asyncio.gather(*subtasks) == [None] * MANY
        return client.xlen(ASKS)

    assert play(server, body, patience_s=25) == 0


def test_a_node_whose_redis_was_away_at_its_start_goes_on(server, client):
    server.stop()

    async def body(node):
        assert await node.reading(order(1)) is None
        await asyncio.to_thread(server.start)
        one = asyncio.create_task(node.reading(order(2)))
        answer(client, (await asked(client, 1))[0].id, "2.5")
        return await one

    assert play(server, body) == 2.5


def test_a_redis_that_comes_back_with_lower_ids_is_read_all_the_same(server, client):
    client.xadd(ANSWERS, {"id": "x", "reading": "1"}, id=f"{2**50}-0")

    async def body(node):
        one = asyncio.create_task(node.reading(order(1)))
        (ask,) = await asked(client, 1)
        client.delete(ANSWERS)
        server.stop()
        await asyncio.to_thread(server.start)
        answer(client, ask.id, "1.5")
        return await one

    assert play(server, body, patience_s=20) == 1.5


# --- the topology's side


def conf(server) -> dict:
    return {"leeward.redis.url": server.url, "sensing.stream": "s", "storm.id": "s-1-1"}


class Emitting:
    """A component's own code without Storm: what it emits is kept in `out`."""

    fencing_token = FencingToken(base=1, epoch=0)

    def __init__(self, server, state: dict | None = None) -> None:
        self.state, self.out, self.counters = {} if state is None else state, [], Counter()
        self.initialize(conf(server), {})
        self.resumed()

    def initialize(self, conf, context) -> None: ...

    def resumed(self) -> None: ...

    def emit(self, values) -> None:
        self.out.append(values)


class LocalAsks(Emitting, Asks):
    initialize, resumed = Asks.initialize, Asks.resumed


class LocalSense(Emitting, Sense):
    pass


class LocalAnswers(Emitting, Answers):
    initialize = Answers.initialize


class Tup:
    def __init__(self, values) -> None:
        self.values = values


def test_the_source_reads_each_ask_once_and_removes_what_no_restore_needs(server, client):
    for query in range(5):
        client.xadd(ASKS, {"id": f"a-{query}", "query": query, "arrived": 1.0, "due": 2.0, "unloaded": 0.5})
    client.xadd(ASKS, {"what": "is this"})
    source = LocalAsks(server)
    for _ in range(3):
        source.next_tuple()
    cut = dict(source.state)
    for _ in range(4):
        source.next_tuple()
    assert source.out == [[f"a-{query}", query, 1.0, 2.0, 0.5] for query in range(5)]
    assert source.counters == {"no ask": 1}
    source.committed(cut)
    assert client.xlen(ASKS) == 3
    restored = LocalAsks(server, cut)
    for _ in range(4):
        restored.next_tuple()
    assert [values[0] for values in restored.out] == ["a-3", "a-4"]


def test_an_ask_gets_one_answer_whatever_comes_again_and_none_from_a_replaced_sink(server, client):
    sink = LocalAnswers(server)
    for ask in ("a-1", "a-2", "a-1"):
        sink.process(Tup([ask, "1.5"]))
    assert sink.counters == {"answers": 2, "repeats": 1}
    client.set("leeward:s-1-1:base", 2)
    sink.process(Tup(["a-3", "1.5"]))
    assert sink.counters["fenced"] == 1 and client.xlen(ANSWERS) == 2
    assert client.zcard(f"{ANSWERS}:names") == 2
    with pytest.raises(FencedError, match="base 1 may not write"):
        Streams(conf(server)).answer("a-3", "", FencingToken(base=1, epoch=0))


def test_only_the_newest_names_are_remembered(client):
    fenced = FencedRedis(client, "s-1-1")
    token = FencingToken(0, 0)
    for n in (1, 2, 3, 3, 2, 1):
        fenced.append_once(token, "t", f"n{n}", {"n": n}, keep=1000, remember=2)
    assert [int(fields[b"n"]) for _, fields in client.xrange("t")] == [1, 2, 3, 1]


def test_the_workers_of_a_domain_hand_over_and_the_bolts_answer(server, client, tmp_path, monkeypatch):
    node = {"areas": [[0, 0, 1, 1]], "execution_s": 0.1, "topology": {"redis": server.address, "stream": "s"}}
    (tmp_path / "north.json").write_text(json.dumps(NORTH | {"nodes": [node, node]}))
    monkeypatch.setenv("LEEWARD_SECRETS", str(server.secrets_file))
    executors = Executors(2, _Nodes(read_domain(tmp_path / "north.json")).execute)  # each with a reader of its own

    async def topology() -> None:
        source, sense, sink = LocalAsks(server), LocalSense(server), LocalAnswers(server)
        while True:
            await asyncio.to_thread(source.next_tuple)
            for done, after in ((source, sense), (sense, sink)):
                for values in done.out:
                    after.process(Tup(values))
                done.out.clear()

    async def body():
        async with executors:
            playing = asyncio.create_task(topology())
            futures = []
            for query in range(50):
                futures.append(asyncio.get_running_loop().create_future())
                executors.execute(query % 2, order(query), futures[-1].set_result)
            done = await asyncio.wait_for(asyncio.gather(*futures), 20)
            playing.cancel()
            return [one.value for one in done]

    assert asyncio.run(body()) == [reading(query) for query in range(50)]
    assert client.xlen(ANSWERS) == 50
