"""Entries of the registry: the words of a domain or a provider about itself, and how they are checked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from leeward.core.fields import FieldError, each, mapping, text
from leeward.policies.dssp.model.area import Area

#: Of an organisation; it stands in paths of URLs as it is.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
#: Letters of a capability and of a URL at most.
LONGEST_CAPABILITY, LONGEST_URL = 128, 2048
#: Capabilities and areas of one domain at most: each pair is a box in the index.
MOST_CAPABILITIES, MOST_AREAS = 64, 256


@dataclass(frozen=True, kw_only=True)
class ProviderEntry:
    """A service provider (the paper's CSP) and the address of its agent. Raises FieldError for what is malformed."""

    name: str  #: as `NAME`
    url: str  #: http or https, with a host

    def __post_init__(self) -> None:
        check_name("name", self.name)
        _check_url("url", self.url)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        return {"name": self.name, "url": self.url}

    @classmethod
    def from_json(cls, field: str, value: object) -> ProviderEntry:
        """From {"name", "url"}. Raises FieldError with a path below `field`, such as `provider.url`."""
        entry = mapping(field, value, frozenset({"name", "url"}), required=("name", "url"))
        name, url = text(f"{field}.name", entry["name"]), text(f"{field}.url", entry["url"])
        check_name(f"{field}.name", name)
        _check_url(f"{field}.url", url)
        return cls(name=name, url=url)

    @cached_property
    def encoded(self) -> bytes:
        """`to_json` as bytes of JSON: an answer with many entries is a join of these."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode()


@dataclass(frozen=True, kw_only=True)
class DomainEntry(ProviderEntry):
    """A domain (the paper's IAD): its agent's address, what it senses, and where.

    Raises FieldError for what is malformed.
    """

    capabilities: tuple[str, ...]  #: one or more, none twice
    areas: tuple[Area, ...]  #: one or more; they may overlap

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_capabilities("capabilities", self.capabilities)
        _check_areas("areas", self.areas)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        areas = [area.to_json() for area in self.areas]
        return super().to_json() | {"capabilities": list(self.capabilities), "areas": areas}

    @classmethod
    def from_json(cls, field: str, value: object) -> DomainEntry:
        """From {"name", "url", "capabilities": [text], "areas": [[west, south, east, north]]}.

        Raises FieldError with a path below `field`, such as `domain.areas[2].south`.
        """
        required = ("name", "url", "capabilities", "areas")
        entry = mapping(field, value, frozenset(required), required=required)
        about = ProviderEntry.from_json(field, {"name": entry["name"], "url": entry["url"]})
        capabilities = each(f"{field}.capabilities", entry["capabilities"], text)
        _check_capabilities(f"{field}.capabilities", capabilities)
        areas = each(f"{field}.areas", entry["areas"], Area.from_json)
        _check_areas(f"{field}.areas", areas)
        return cls(name=about.name, url=about.url, capabilities=capabilities, areas=areas)


def check_name(field: str, name: str) -> None:
    """Raises FieldError for a name that is not as `NAME`."""
    if not NAME.fullmatch(name):
        remedy = "give 1 to 128 letters, digits, '.', '_' or '-', a letter or digit first"
        raise FieldError(field, name, "is not the name of an organisation", remedy=remedy)


def check_capability(field: str, capability: str) -> None:
    """Raises FieldError for a capability that is empty, too long, or not printable."""
    if not capability.strip() or not capability.isprintable() or len(capability) > LONGEST_CAPABILITY:
        remedy = f"give 1 to {LONGEST_CAPABILITY} printable letters, such as 'camera'"
        raise FieldError(field, capability, "is not the name of a capability", remedy=remedy)


def _check_url(field: str, url: str) -> None:
    remedy = "give one such as https://host:8443"
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > LONGEST_URL:
        raise FieldError(field, url, f"is not a URL of at most {LONGEST_URL} ASCII letters", remedy=remedy)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or half of an IPv6 address
        usable = False
    if not usable:
        raise FieldError(field, url, "is not an http or https URL with a host", remedy=remedy)
    if parts.username is not None or parts.password is not None:
        raise FieldError(field, url, "has a user or a password, which all would read", remedy=remedy)


def _check_capabilities(field: str, capabilities: Sequence[str]) -> None:
    _check_many(field, capabilities, MOST_CAPABILITIES)
    for position, capability in enumerate(capabilities):
        check_capability(f"{field}[{position}]", capability)
        if capability in capabilities[:position]:
            raise FieldError(f"{field}[{position}]", capability, "is given twice", remedy="remove one of them")


def _check_areas(field: str, areas: Sequence[Area]) -> None:
    _check_many(field, areas, MOST_AREAS)


def _check_many(field: str, items: Sequence[object], most: int) -> None:
    if not 1 <= len(items) <= most:
        raise FieldError(field, len(items), f"is not a list of 1 to {most}", remedy=f"give 1 to {most}")
