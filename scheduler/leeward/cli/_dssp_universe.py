"""The testbed of DSSP as processes on this machine: registry, domains, provider; and queries for it, over HTTP."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from leeward.adapters.organisations.tls import client_tls
from leeward.adapters.organisations.tokens import read_tokens, write_tokens
from leeward.cli._background import forked
from leeward.cli._common import until_told
from leeward.cli._dssp_domain import serve_domain
from leeward.cli._dssp_provider import serve_provider
from leeward.cli._dssp_registering import refusal
from leeward.cli._dssp_registry import serve_registry
from leeward.core.errors import LeewardError
from leeward.policies.dssp.experiments.live_setup import (
    LOAD,
    PROVIDER,
    Asked,
    domain_document,
    domain_name,
    service_documents,
)
from leeward.policies.dssp.model.organisation_files import read_domain, read_provider
from leeward.policies.dssp.model.weights import LEARN
from leeward.policies.dssp.simulation.setup import Setting

HOST = "127.0.0.1"
#: For all to be there and to have measured their nodes, s.
START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    """Where its parts are; `tokens`: of the load generator for the provider, and of each domain for itself."""

    provider: str
    domains: dict[str, str]
    tokens: dict[str, str]
    authority: Path | None

    def client(self, name: str, url: str) -> httpx.AsyncClient:
        """For `name`'s token."""
        return httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {self.tokens[name]}"}, timeout=60.0,
            verify=client_tls(self.authority), limits=httpx.Limits(max_connections=None),
        )  # fmt: skip


@contextmanager
def universe(
    setting: Setting, *, discipline: str, seed: int, port: int, tls: bool, out: Path, scaling: bool = False,
    learn: int = LEARN,
) -> Iterator[Universe]:  # fmt: skip
    """All processes, in groups that are ended after the block; they take ports from `port` on.

    They are forked, as each would import for seconds; `leeward dssp domain` and its like serve the same.
    """
    out.mkdir(parents=True, exist_ok=True)
    scheme = "https" if tls else "http"
    names = [domain_name(number) for number in range(len(setting.means))]
    listen: dict[str, Any] = {"host": HOST}
    if tls:
        _certificates(out)
        listen |= {"certificate": "certificate.pem", "key": "key.pem"}
    tokens = _tokens(out, names)
    urls = {name: f"{scheme}://{HOST}:{port + number}" for number, name in enumerate(("registry", PROVIDER, *names))}
    with ExitStack() as stack:
        registry = partial(
            serve_registry, read_tokens(out / "registry.callers.json"), host=HOST, port=port, lease_s=60.0,
            certificate=out / "certificate.pem" if tls else None, key=out / "key.pem" if tls else None, stop=until_told,
        )  # fmt: skip
        stack.enter_context(forked(registry, out / "registry.log"))
        for number, name in enumerate((PROVIDER, *names)):
            common = {
                "registry": urls["registry"], "listen": {**listen, "port": port + 1 + number},
                "callers": f"{name}.callers.json", "tokens": f"{name}.tokens.json",
                **({"authority": "authority.pem"} if tls else {}),
            }  # fmt: skip
            if name == PROVIDER:
                document, serve = {**common, "name": name, "learn": learn}, _provider
            else:
                document = domain_document(
                    setting, number - 1, discipline=discipline, seed=seed, scaling=scaling, common=common
                )
                serve = _domain
            (file := out / f"{name}.json").write_text(json.dumps(document, indent=1))
            stack.enter_context(forked(partial(serve, file), out / f"{name}.log"))
        yield Universe(
            provider=urls[PROVIDER], domains={name: urls[name] for name in names}, tokens=tokens,
            authority=out / "authority.pem" if tls else None,
        )  # fmt: skip


def _domain(path: Path) -> None:
    """As `leeward dssp domain` does."""
    file = read_domain(path)
    serve_domain(file, callers=read_tokens(file.callers), token=read_tokens(file.tokens)["registry"], stop=until_told)


def _provider(path: Path) -> None:
    """As `leeward dssp provider` does."""
    file = read_provider(path)
    serve_provider(file, callers=read_tokens(file.callers), tokens=read_tokens(file.tokens), stop=until_told)


def _tokens(out: Path, names: Sequence[str]) -> dict[str, str]:
    """Files of tokens: each pair of organisations has one of its own."""
    made = {name: secrets.token_urlsafe(24) for name in (PROVIDER, *names)}
    write_tokens(out / "registry.callers.json", made)
    write_tokens(out / f"{PROVIDER}.callers.json", {LOAD: (load := secrets.token_urlsafe(24))})
    own, towards = {}, {}
    for name in names:
        own[name], towards[name] = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        write_tokens(out / f"{name}.callers.json", {PROVIDER: towards[name], name: own[name]})
        write_tokens(out / f"{name}.tokens.json", {"registry": made[name]})
    write_tokens(out / f"{PROVIDER}.tokens.json", {"registry": made[PROVIDER], **towards})
    return {LOAD: load, **own}


def _certificates(out: Path) -> None:
    """An authority for this run alone, and a certificate for this machine."""
    import trustme

    authority = trustme.CA()
    certificate = authority.issue_cert(HOST, "localhost")
    authority.cert_pem.write_to_path(out / "authority.pem")
    (key := out / "key.pem").touch(mode=0o600)
    certificate.private_key_pem.write_to_path(key)
    for number, part in enumerate(certificate.cert_chain_pems):
        part.write_to_path(out / "certificate.pem", append=number > 0)


async def open_services(
    client: httpx.AsyncClient, setting: Setting, rate: float, weights: Mapping[str, float] = MappingProxyType({})
) -> None:
    """Open a service for each class, when all domains are there; `weights`: of classes, 1 where none is given.

    Raises LeewardError if a domain does not keep the terms.
    """
    try:
        await _open_services(client, setting, service_documents(setting, rate, weights), rate)
    except TimeoutError:
        remedy = "Read the logs of registry, provider and domains."
        raise LeewardError(f"not all domains have joined in {START_S:g} s.", remedy=remedy) from None


async def _open_services(
    client: httpx.AsyncClient, setting: Setting, documents: Mapping[str, Any], rate: float
) -> None:
    domains = len(setting.means)
    async with asyncio.timeout(START_S):
        for one in setting.classes:
            expected = 1 if one.only is not None else domains
            while True:
                try:
                    answer = await client.put(f"/services/{one.name}", json=documents[one.name])
                except httpx.TransportError:
                    await asyncio.sleep(0.5)
                    continue
                if answer.is_error and answer.status_code not in (400, 404):
                    raise refusal(answer)
                members = answer.json()["members"] if answer.is_success else {}
                refused = {name: member["why"] for name, member in members.items() if member["why"]}
                if refused:
                    why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
                    remedy = "Ask for a lower rate, or start on a machine that does nothing else."
                    raise LeewardError(f"service {one.name} at {rate:g} queries/s: {why}.", remedy=remedy)
                if len(members) == expected and all(member["accepted"] for member in members.values()):
                    break
                await asyncio.sleep(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The outcome of a query; `seconds`: at its client, None if it failed."""

    asked: Asked
    seconds: float | None
    complete: bool


async def generate(
    client: httpx.AsyncClient, queries: Sequence[Asked], stop: asyncio.Event, then: Callable[[Heard], None]
) -> None:
    """Send each query at its time, whether earlier ones are answered or not; returns when all are, or at `stop`."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    began = loop.time()

    async def one(query: Asked) -> None:
        sent, seconds, complete = loop.time(), None, False
        try:
            answer = await client.post("/queries", json={"service": query.service, "areas": [query.area.to_json()]})
            if answer.is_success:
                told = answer.json()
                seconds, complete = loop.time() - sent, not told["missing"] and not told["failed"]
        except httpx.HTTPError:
            pass
        then(Heard(asked=query, seconds=seconds, complete=complete))

    for query in queries:
        wait_s = began + query.at_s - loop.time()
        if wait_s > 0:
            try:
                await asyncio.wait_for(stop.wait(), wait_s)
                break
            except TimeoutError:
                pass
        task = asyncio.create_task(one(query))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        await asyncio.wait(tasks, timeout=10.0)
    for task in tasks:
        task.cancel()
