"""An organisation's place in the registry of DSSP: taken, renewed, and given back; and the TLS of its files."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import httpx

from leeward.adapters.organisations.tls import client_tls, server_tls
from leeward.core.errors import LeewardError
from leeward.policies.dssp.model.organisation_files import Listen, Organisation

#: Between two tries to reach the registry, s.
RETRY_S = 0.5
#: Tries at the start; later ones go on for ever.
TRIES = 40

_log = logging.getLogger(__name__)


class Registration:
    """As `async with`: registered under `kind` ("domains" or "providers") with what it says `about` itself.

    Raises LeewardError if the registry refuses it, or is not there.
    """

    def __init__(self, file: Organisation, kind: str, about: dict[str, Any], token: str) -> None:
        self._path, self._about, self._registry = f"/{kind}/{file.name}", about, file.registry
        self._client = client_of(file, token)

    async def __aenter__(self) -> Registration:
        for last in range(TRIES, 0, -1):
            try:
                lease_s = await self._put()
                break
            except httpx.TransportError as error:
                if last == 1:
                    raise LeewardError(f"registry {self._registry}: {error}.", remedy="Start it.") from None
                await asyncio.sleep(RETRY_S)
        self._renewal = asyncio.create_task(self._renew(lease_s))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._renewal.cancel()
        await asyncio.gather(self._renewal, return_exceptions=True)
        try:
            await self._client.delete(self._path)
        except httpx.HTTPError:
            _log.warning("the registry does not answer; the registration ends with its lease")
        await self._client.aclose()

    async def _put(self) -> float:
        answer = await self._client.put(self._path, json=self._about)
        if answer.is_error:
            raise refusal(answer)
        return float(answer.json()["lease_s"])

    async def _renew(self, lease_s: float) -> None:
        while True:
            await asyncio.sleep(lease_s / 3)
            try:
                lease_s = await self._put()
            except (httpx.TransportError, LeewardError) as error:
                _log.warning("the registration was not renewed: %s", error)


def client_of(file: Organisation, token: str) -> httpx.AsyncClient:
    """An HTTP client for the registry."""
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
