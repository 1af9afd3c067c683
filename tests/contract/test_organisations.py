"""Organisations over real sockets within one process: links, tokens, TLS, limits and the end."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import pytest
import trustme
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from leeward.adapters.organisations import channels, links, serving
from leeward.adapters.organisations.frames import VERSION, Codec
from leeward.adapters.organisations.links import LINK_PATH, LINKS_OF_ONE, Address, Rules
from leeward.adapters.organisations.process import MemberProcess
from leeward.adapters.organisations.serving import caller
from leeward.adapters.organisations.tls import client_tls, server_tls
from leeward.adapters.organisations.tokens import Tokens, read_tokens, write_tokens
from leeward.core.errors import LeewardError
from leeward.core.members import To, ToAll

NORTH, SOUTH, CLIENT = "north-0123456789abcdef", "south-0123456789abcdef", "client-0123456789abcde"
TOKENS = {"north": NORTH, "south": SOUTH, "client": CLIENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Wants an echo."""

    number: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The answer."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise LeewardError("an echo below 0.")


class Note(msgspec.Struct, frozen=True):
    """Is not answered."""

    text: str


KINDS = (Call, Echo, Note)
CODEC = Codec(KINDS)


@dataclass(frozen=True, slots=True)
class Heard:
    """An effect: a message has come."""

    sender: str
    message: Any


class Echoing:
    """A member that answers calls, and tells of all that it hears."""

    def __init__(self, name: str) -> None:
        self.name, self.ticks = name, 0

    def receive(self, sender: str, message: Any, now: float, rng: Random) -> Sequence[Any]:
        if isinstance(message, Note) and message.text == "fault":
            raise ZeroDivisionError
        answer = [To(sender, Echo(number=message.number))] if isinstance(message, Call) else []
        return [*answer, Heard(sender, message)]

    def tick(self, now: float, rng: Random) -> Sequence[Any]:
        self.ticks += 1
        return []


class Effects:
    """Effects that a process gave to the wiring, to wait for."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._more = asyncio.Event()

    def __call__(self, effect: Any) -> None:
        self.all.append(effect)
        self._more.set()

    async def until(self, count: int) -> list[Any]:
        async with asyncio.timeout(10):
            while len(self.all) < count:
                self._more.clear()
                await self._more.wait()
        return self.all


class Running:
    """A process of a member, and its effects."""

    def __init__(self, name: str, **options: Any) -> None:
        self.effects = Effects()
        self.process = MemberProcess(
            Echoing(name), KINDS, on_effect=self.effects, seed=1, **{"tokens": TOKENS, "tick_s": 0.01, **options}
        )
        self.traffic = self.process.traffic


@asynccontextmanager
async def running(name: str, **options: Any) -> AsyncIterator[Running]:
    one, stop = Running(name, **options), asyncio.Event()
    task = asyncio.create_task(one.process.run(stop))
    started = asyncio.create_task(one.process.started.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if started.done():
            yield one
    finally:
        started.cancel()
        stop.set()
        await task


def run(work: Callable[[], Awaitable[None]]) -> None:
    """In a loop of its own; at the end no task of the processes may be left."""

    async def watched() -> None:
        async with asyncio.timeout(20):
            await work()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left: {left}"

    asyncio.run(watched())


async def eventually(true: Callable[[], bool]) -> None:
    """For counts that no event tells of."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


def at(other: Running, token: str = SOUTH) -> Address:
    return Address(url=other.process.url, token=token)


async def dial(other: Running, token: str | None = CLIENT, **options: Any) -> ClientConnection:
    """A link by hand."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = other.process.url.replace("http", "ws", 1) + LINK_PATH
    return await connect(url, additional_headers=headers, proxy=None, **options)


# --- links


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


# --- tokens


@pytest.mark.parametrize("token", [None, "", "wrong-0123456789abcdef", SOUTH[:-1], "north-0123456789abcdef"])
def test_without_a_token_of_another_there_is_no_link(token: str | None):
    async def work() -> None:
        async with running("north") as north:
            with pytest.raises(InvalidStatus) as refused:
                await dial(north, token)
            response = refused.value.response
            assert response.status_code == (403 if token == NORTH else 401)
            assert json.loads(response.body).keys() == {"error", "remedy"}
            assert north.traffic.unopened == {"unauthorised": 1} and not north.process.links.open_links()

    run(work)


def test_the_token_decides_the_name_whatever_a_caller_says():
    async def work() -> None:
        async with running("north") as north:
            link = await dial(north, CLIENT, origin="south", subprotocols=["south"])
            await link.send(CODEC.frame([CODEC.pack(Note("I am south"))]))
            assert await north.effects.until(1) == [Heard("client", Note("I am south"))]
            await link.close()

    run(work)


def test_a_member_whose_token_is_refused_goes_on_trying():
    async def work() -> None:
        async with running("north") as north:
            address = at(north, "wrong-0123456789abcdef")
            async with running("south", addresses={"north": address}, rules=Rules(retry_s=0.01)) as south:
                south.process.take([To("north", Note("?"))])
                await eventually(lambda: south.traffic.unopened["refused"] >= 2)
                assert north.traffic.unopened["unauthorised"] >= 2 and south.process.links.waiting() == {"north": 1}
        assert south.traffic.dropped["unsent"] == 1 and north.effects.all == []

    run(work)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('{"a": 5}', "the token of 'a' is no text"),
        ('{"": "0123456789abcdef"}', "a name is empty"),
        ('{"a": "0123456789abcde"}', "the token of 'a' has 15 characters, at least 16"),
        ('{"a": "0123456789 abcdef"}', "no header can carry"),
        ('{"a": "0123456789äbcdef"}', "no header can carry"),
        ('{"a": "0123456789abcdef", "b": "0123456789abcdef"}', "'a' and 'b' have the same token"),
    ],
)
def test_a_faulty_file_of_tokens_is_refused_by_its_field_and_shows_no_token(tmp_path: Path, content: str, says: str):
    (file := tmp_path / "tokens").write_text(content)
    file.chmod(0o600)
    with pytest.raises(LeewardError, match=says) as refused:
        read_tokens(file)
    assert str(file) in str(refused.value) and refused.value.remedy and "0123456789" not in str(refused.value)


def test_a_file_of_tokens_is_private_and_there(tmp_path: Path):
    write_tokens(file := tmp_path / "tokens", TOKENS)
    assert read_tokens(file) == TOKENS and file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    with pytest.raises(LeewardError, match=r"has mode 640: others can read it\. chmod 600"):
        read_tokens(file)
    with pytest.raises(LeewardError, match="cannot be read: No such file"):
        read_tokens(tmp_path / "none")
    with pytest.raises(LeewardError, match="is not a regular file"):
        read_tokens(tmp_path)


def test_only_the_scheme_bearer_proves_a_name():
    tokens = Tokens(TOKENS)
    assert tokens.name_of(f"Bearer {SOUTH}") == tokens.name_of(f"bearer  {SOUTH}") == "south"
    assert not any(tokens.name_of(wrong) for wrong in (None, "", SOUTH, f"Basic {SOUTH}", "Bearer", f"Bearer {SOUTH}x"))


# --- TLS


@dataclass(frozen=True)
class Certificates:
    server: ssl.SSLContext
    client: ssl.SSLContext
    stranger: ssl.SSLContext


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder, ours, other = tmp_path_factory.mktemp("tls"), trustme.CA(), trustme.CA()
    own = ours.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(folder / "key.pem")
    own.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    ours.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    return Certificates(
        server=server_tls(folder / "certificate.pem", folder / "key.pem"),
        client=client_tls(folder / "ca.pem"),
        stranger=client_tls(folder / "other.pem"),
    )


def test_links_and_routes_go_over_tls(certificates: Certificates):
    async def work() -> None:
        async with running("north", server_tls=certificates.server, routes=ROUTES) as north:
            assert north.process.url.startswith("https://")
            options = {"addresses": {"north": at(north)}, "client_tls": certificates.client}
            async with running("south", **options) as south:
                south.process.take([To("north", Call(number=1))])
                await south.effects.until(1)
            async with httpx.AsyncClient(verify=certificates.client, trust_env=False) as client:
                assert (await client.get(f"{north.process.url}/nowhere")).status_code == 404

    run(work)


def test_a_certificate_of_another_authority_ends_the_try(certificates: Certificates):
    async def work() -> None:
        async with running("north", server_tls=certificates.server) as north:
            options = {"addresses": {"north": at(north)}, "client_tls": certificates.stranger}
            async with running("south", rules=Rules(retry_s=0.01), **options) as south:
                south.process.take([To("north", Call(number=1))])
                await eventually(lambda: south.traffic.unopened["tls"] >= 2)
        assert north.effects.all == [] and north.traffic.links_opened == 0

    run(work)


def test_plain_connections_beyond_the_machine_and_faulty_addresses_are_refused(tmp_path: Path):
    with pytest.raises(LeewardError, match=r"serve at: 0\.0\.0\.0 is no loopback address"):
        Running("north", host="0.0.0.0")
    for url, says in (
        ("http://example.org:80", "address of 'north': example.org is no loopback address"),
        ("ftp://127.0.0.1", "cannot be used"),
        ("http://127.0.0.1:port", "cannot be used"),
        ("http://me:secret@127.0.0.1", "cannot be used"),
    ):
        with pytest.raises(LeewardError, match=says):
            Running("south", addresses={"north": Address(url=url, token=SOUTH)})
    with pytest.raises(LeewardError, match=r"certificate .* cannot be used"):
        server_tls(tmp_path / "none", tmp_path / "none")
    with pytest.raises(LeewardError, match=r"CA file .* cannot be used"):
        client_tls(tmp_path / "none")


# --- limits and faults


def test_an_oversized_frame_ends_its_link_with_1009():
    async def work() -> None:
        async with running("north", rules=Rules(largest=10_000)) as north:
            link = await dial(north)
            await link.send(b"x" * 10_001)
            with pytest.raises(ConnectionClosed) as closed:
                await link.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
            await eventually(lambda: not north.process.links.open_links())

    run(work)


def test_malformed_frames_are_counted_and_the_link_goes_on():
    async def work() -> None:
        async with running("north") as north:
            link = await dial(north)
            pack = msgspec.msgpack.encode
            good = CODEC.pack(Note("good"))
            for frame in (
                b"", b"\xc1", b"\x91" * 5_000, pack([VERSION + 1, []]), pack([VERSION, [[99, {}]]]),
                pack([VERSION, [[-1, {"text": ""}]]]), pack([VERSION, [[0, {"number": "x"}]]]),
                pack([VERSION, [[1, {"number": -1}]]]), "text",
            ):  # fmt: skip
                await link.send(frame)
            await link.send(pack([VERSION, [[0, 7], msgspec.Raw(good), [2, {"text": "fault"}], msgspec.Raw(good)]]))
            assert await north.effects.until(2) == [Heard("client", Note("good"))] * 2
            assert north.traffic.dropped == {"malformed": 10, "failed": 1} and north.traffic.links_opened == 1
            await link.close()

    run(work)


async def _length(request: Request) -> JSONResponse:
    return JSONResponse({"length": len(await request.body())})


async def _name(request: Request) -> JSONResponse:
    return JSONResponse({"name": caller(request, Tokens(TOKENS))})


async def _refuses(request: Request) -> JSONResponse:
    raise LeewardError("field rate is -1.", remedy="Give a rate above 0.")


async def _fails(request: Request) -> JSONResponse:
    raise ZeroDivisionError


ROUTES = [
    Route("/length", _length, methods=["POST"]),
    Route("/name", _name),
    Route("/refuses", _refuses),
    Route("/fails", _fails),
]


def test_routes_answer_errors_in_one_shape_and_refuse_large_bodies():
    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 600

    async def work() -> None:
        async with (
            running("north", routes=ROUTES, largest_body=1_000) as north,
            httpx.AsyncClient(base_url=north.process.url, trust_env=False) as client,
        ):
            assert (await client.post("/length", content=b"x" * 1_000)).json() == {"length": 1_000}
            assert (await client.post("/length", content=chunks(1))).json() == {"length": 600}
            assert (await client.get("/name", headers={"Authorization": f"Bearer {SOUTH}"})).json() == {"name": "south"}
            answers = {
                413: [await client.post("/length", content=body) for body in (b"x" * 1_001, chunks(2), chunks(50))],
                401: [await client.get("/name")],
                400: [await client.get("/refuses")],
                404: [await client.get("/nowhere")],
                405: [await client.get("/length")],
                500: [await client.get("/fails")],
            }
            for status, all_of_it in answers.items():
                for answer in all_of_it:
                    assert answer.status_code == status
                    assert answer.json().keys() == {"error", "remedy"} and answer.json()["remedy"]
            assert answers[400][0].json() == {"error": "field rate is -1.", "remedy": "Give a rate above 0."}
            assert answers[405][0].headers["allow"] == "POST"

    run(work)


# --- the process


def test_events_are_posted_from_threads_and_messages_to_oneself_stay_at_home():
    async def work() -> None:
        async with running("north") as north:
            post = north.process.post
            await asyncio.to_thread(post, lambda now, rng: [To("north", Call(number=3)), rng.random()])
            heard = await north.effects.until(3)
            assert heard[:2] == [Heard("north", Echo(number=3)), Heard("north", Call(number=3))]
            assert heard[2] == Random(1).random() and north.traffic.sent == 0
            post(lambda now, rng: 1 / 0)
            await eventually(lambda: north.traffic.dropped["failed"] == 1 and north.process.member.ticks > 2)
        post(lambda now, rng: ["nothing happens"])

    with pytest.raises(LeewardError, match="has not begun"):
        Running("north").process.post(lambda now, rng: [])
    run(work)


def test_the_end_closes_links_with_1001_and_sends_what_waits():
    async def work() -> None:
        async with running("north", rules=Rules(gather_s=5.0)) as north:
            link = await dial(north)
            await eventually(lambda: north.process.links.open_links() == {"client": 1})
            north.process.take([To("client", Note("farewell"))])
        assert CODEC.open(await link.recv()).messages == [Note("farewell")]
        with pytest.raises(ConnectionClosed) as closed:
            await link.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001

    run(work)


def test_requests_in_progress_are_answered_at_the_end_and_deaf_peers_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "GRACE_S", 0.1)
    monkeypatch.setattr(links, "FLUSH_S", 0.1)
    monkeypatch.setattr(channels, "CLOSE_S", 0.1)

    async def work() -> None:
        asked = asyncio.Event()

        async def hangs(_: Request) -> JSONResponse:
            asked.set()
            return await asyncio.Future()

        async with httpx.AsyncClient(trust_env=False) as client:
            async with running("north", routes=[Route("/hangs", hangs)]) as north:
                answer = asyncio.create_task(client.get(f"{north.process.url}/hangs"))
                await asked.wait()
                deaf = await dial(north, ping_interval=None)
                deaf.transport.pause_reading()
                await eventually(lambda: north.process.links.open_links() == {"client": 1})
                large = [To("client", Note("x" * 900_000)) for _ in range(20)]
                north.process.take(large)
            assert (await answer).status_code == 503 and (await answer).json()["error"] == "the organisation ends."
            dropped = north.traffic.dropped
            assert dropped["lost"] and north.traffic.sent + dropped["lost"] + dropped["unsent"] == len(large)
            deaf.transport.abort()
            await deaf.wait_closed()

    run(work)


def test_a_fault_of_a_tick_and_an_address_that_is_taken_end_the_process():
    async def work() -> None:
        async with running("north") as north:
            with pytest.raises(LeewardError, match=r"address 127\.0\.0\.1:\d+ cannot be used: .*in use"):
                async with running("south", port=north.process.port):
                    pass
        broken = Running("north")
        broken.process.member.tick = lambda now, rng: 1 / 0
        with pytest.raises(ZeroDivisionError):
            await broken.process.run(asyncio.Event())

    run(work)


def test_the_logs_of_a_quiet_life_are_empty_and_show_no_token(caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        async with running("north") as north, running("south", addresses={"north": at(north)}) as south:
            south.process.take([To("north", Call(number=1))])
            await south.effects.until(1)

    run(work)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert SOUTH not in caplog.text
