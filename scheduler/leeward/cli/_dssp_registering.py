"""An organisation's place in the registry of DSSP: taken, renewed, and given back; and the TLS of its files."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from leeward.adapters.organisations.process import MemberProcess
from leeward.adapters.organisations.tls import client_tls, refuse_plain, server_tls
from leeward.core.errors import LeewardError
from leeward.policies.dssp.model.organisation_files import Listen, Organisation

#: Between two tries to reach the registry, s.
RETRY_S = 0.5
#: Tries at the start; later ones go on for ever.
TRIES = 40

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Registration:
    """Under `kind` ("domains" or "providers"), with what an organisation says `about` itself."""

    def __init__(self, file: Organisation, kind: str, about: dict[str, Any], token: str) -> None:
        self._path, self._about, self._registry = f"/{kind}/{file.name}", about, file.registry
        self._client = client_of(file, token)

    async def begin(self) -> bool:
        """Register, and renew from now on. Raises LeewardError if the registry refuses it, or is not there."""
        for last in range(TRIES, 0, -1):
            try:
                lease_s = await self._put()
                break
            except httpx.TransportError as error:
                if last == 1:
                    raise LeewardError(f"registry {self._registry}: {error}.", remedy="Start it.") from None
                await asyncio.sleep(RETRY_S)
        self._renewal = asyncio.create_task(self._renew(lease_s))
        return True

    async def end(self) -> None:
        """Give the place back."""
        self._renewal.cancel()
        await asyncio.gather(self._renewal, return_exceptions=True)
        try:
            await self._client.delete(self._path)
        except httpx.HTTPError:
            _log.warning("the registry does not answer; the registration ends with its lease")

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def _put(self) -> float:
        answer = await self._client.put(self._path, json=self._about)
        if answer.is_error:
            raise refusal(answer)
        try:
            return float(answer.json()["lease_s"])
        except (ValueError, KeyError, TypeError):
            raise LeewardError(f"{answer.request.url}: it is no registry.", remedy="Name the registry's URL.") from None

    async def _renew(self, lease_s: float) -> None:
        while True:
            await asyncio.sleep(lease_s / 3)
            try:
                lease_s = await self._put()
            except (httpx.HTTPError, LeewardError) as error:  # it may be back the next time
                _log.warning("the registration was not renewed: %s", error)


async def before(ending: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The outcome of some work, or None if the end comes first: the work is cancelled then."""
    task, waiting = asyncio.create_task(work), asyncio.create_task(ending.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        return await task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


@asynccontextmanager
async def registered(
    process: MemberProcess, file: Organisation, kind: str, about: Callable[[], dict[str, Any]], token: str,
    ending: asyncio.Event,
) -> AsyncIterator[None]:  # fmt: skip
    """As `async with`: serve, and be registered until `ending`; the block then takes leave, while it still serves.

    Raises LeewardError if the address is taken, or the registry refuses.
    """
    ended = asyncio.Event()
    serving = asyncio.create_task(process.run(ended))
    try:
        started = asyncio.create_task(process.started.wait())
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if serving.done():
            await serving
        registration = Registration(file, kind, about(), token)
        try:
            if await before(ending, registration.begin()):
                waiting = asyncio.create_task(ending.wait())
                await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                await registration.end()
        finally:
            await registration.close()
        yield
    finally:
        ended.set()
        await serving


def check_url(field: str, url: str) -> None:
    """Raises LeewardError for one that is none, or that would send tokens in plain text beyond this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise LeewardError(f"{field}: {url!r} cannot be used.", remedy="Write https://host:port.")
    if parts.scheme == "http":
        refuse_plain(field, host, "Write https:// and give the authority.")


def client_of(file: Organisation, token: str) -> httpx.AsyncClient:
    """An HTTP client for the registry. Raises LeewardError as `check_url` does."""
    check_url("registry", file.registry)
    return httpx.AsyncClient(
        base_url=file.registry, headers={"Authorization": f"Bearer {token}"}, verify=authority_of(file), timeout=10.0,
    )  # fmt: skip


def authority_of(file: Organisation) -> ssl.SSLContext:
    """That certificates of others are checked against."""
    return client_tls(file.authority)


def server_tls_of(listen: Listen) -> ssl.SSLContext | None:
    """None without a certificate."""
    if listen.certificate is None or listen.key is None:
        return None
    return server_tls(listen.certificate, listen.key)


def refusal(answer: httpx.Response) -> LeewardError:
    """The error that an organisation has answered with."""
    try:
        told = answer.json()
        return LeewardError(f"{answer.request.url}: {told['error']}", remedy=told["remedy"])
    except (ValueError, KeyError, TypeError):
        return LeewardError(f"{answer.request.url}: it answered {answer.status_code}.", remedy="Read its log.")
