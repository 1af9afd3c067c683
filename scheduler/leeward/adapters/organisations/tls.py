"""Contexts of TLS, and where plain connections are allowed: within one machine."""

from __future__ import annotations

import ipaddress
import ssl
from os import PathLike, fspath

from leeward.core.errors import ConfigError

Path = str | PathLike[str]


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Of an organisation that serves. Raises ConfigError if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigError(
            f"certificate {fspath(certificate)!r} with key {fspath(key)!r} cannot be used: {_why(error)}.",
            remedy="Name a certificate chain and its key, both PEM.",
        ) from None
    return context


def client_tls(ca: Path | None = None) -> ssl.SSLContext:
    """Of an organisation that connects: trusts the authorities of this file alone, or those of the machine."""
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigError(
            f"CA file {fspath(ca or '')!r} cannot be used: {_why(error)}.",
            remedy="Name the authority's certificates, PEM.",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def is_loopback(host: str) -> bool:
    """Does this host stay within the machine?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_plain(field: str, host: str, remedy: str) -> None:
    """Raise ConfigError if a plain connection to or at this host would leave the machine, and show tokens there."""
    if not is_loopback(host):
        raise ConfigError(f"{field}: {host} is no loopback address, and the connection would be plain.", remedy=remedy)
