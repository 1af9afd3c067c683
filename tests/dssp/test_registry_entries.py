"""Entries of the registry: their JSON, and what is refused."""

from __future__ import annotations

import json

import pytest

from leeward.core.fields import FieldError
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.registry.entries import MOST_AREAS, MOST_CAPABILITIES, DomainEntry, ProviderEntry

GOOD = {"name": "north", "url": "https://north:8443", "capabilities": ["camera"], "areas": [[1, 2, 3, 4]]}


def test_json_brings_an_entry_back():
    entry = DomainEntry.from_json("domain", GOOD)
    assert entry.areas == (Area(1, 2, 3, 4),) and entry.capabilities == ("camera",)
    assert json.loads(entry.encoded) == GOOD
    provider = ProviderEntry.from_json("provider", {"name": "maps", "url": "http://[::1]:80/dssp"})
    assert ProviderEntry.from_json("provider", json.loads(provider.encoded)) == provider


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"name": ""}, "domain.name", "not the name of an organisation"),
        ({"name": "a/b"}, "domain.name", "not the name of an organisation"),
        ({"name": "x" * 129}, "domain.name", "not the name of an organisation"),
        ({"name": 3}, "domain.name", "must be text"),
        ({"url": "north:8443"}, "domain.url", "not an http or https URL"),
        ({"url": "https://"}, "domain.url", "not an http or https URL"),
        ({"url": "https://north:port"}, "domain.url", "not an http or https URL"),
        ({"url": "https://[::1"}, "domain.url", "not an http or https URL"),
        ({"url": "file:///etc/hosts"}, "domain.url", "not an http or https URL"),
        ({"url": "https://no rth"}, "domain.url", "not a URL"),
        ({"url": "https://" + "n" * 2048}, "domain.url", "not a URL"),
        ({"url": "https://user:word@north"}, "domain.url", "has a user or a password"),
        ({"capabilities": []}, "domain.capabilities", "not a list of 1 to"),
        ({"capabilities": "camera"}, "domain.capabilities", "must be a list"),
        ({"capabilities": ["camera", ""]}, "domain.capabilities[1]", "not the name of a capability"),
        ({"capabilities": ["\ud800"]}, "domain.capabilities[0]", "not the name of a capability"),
        ({"capabilities": ["c" * 129]}, "domain.capabilities[0]", "not the name of a capability"),
        ({"capabilities": ["a", "b", "a"]}, "domain.capabilities[2]", "given twice"),
        ({"capabilities": [str(n) for n in range(MOST_CAPABILITIES + 1)]}, "domain.capabilities", "not a list of"),
        ({"areas": []}, "domain.areas", "not a list of 1 to"),
        ({"areas": [[1, 2, 3, 4], [1, 2, 3]]}, "domain.areas[1]", "has 3 numbers"),
        ({"areas": [[1, 2, 3, 99]]}, "domain.areas[0].north", "not between -90 and 90"),
        ({"areas": [[1, 2, 3, 4]] * (MOST_AREAS + 1)}, "domain.areas", "not a list of 1 to"),
        ({"pods": 4}, "domain.pods", "unknown key"),
    ],
)
def test_what_is_malformed_is_refused(change, field, reason):
    with pytest.raises(FieldError, match=reason) as caught:
        DomainEntry.from_json("domain", GOOD | change)
    assert caught.value.field == field and caught.value.remedy


@pytest.mark.parametrize("missing", GOOD)
def test_nothing_may_be_missing(missing):
    with pytest.raises(FieldError, match="is missing") as caught:
        DomainEntry.from_json("domain", {key: value for key, value in GOOD.items() if key != missing})
    assert caught.value.field == f"domain.{missing}"


def test_a_constructed_entry_is_checked_too():
    with pytest.raises(FieldError, match="capabilities"):
        DomainEntry(name="north", url="https://north", capabilities=(), areas=(Area(1, 2, 3, 4),))
