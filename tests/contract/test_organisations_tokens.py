"""Tokens and TLS of organisations over real sockets within one process."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme
from websockets.exceptions import InvalidStatus

from leeward.adapters.organisations.links import Address, Rules
from leeward.adapters.organisations.tls import client_tls, server_tls
from leeward.adapters.organisations.tokens import Tokens, read_tokens, write_tokens
from leeward.core.errors import LeewardError
from leeward.core.members import To
from tests.helpers.organisations import (
    CLIENT,
    CODEC,
    NORTH,
    ROUTES,
    SOUTH,
    TOKENS,
    Call,
    Heard,
    Note,
    Running,
    at,
    dial,
    eventually,
    run,
    running,
)


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
