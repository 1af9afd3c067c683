"""Registrations under leases, and discovery by capability and area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.registry.entries import DomainEntry, ProviderEntry, check_capability
from leeward.policies.dssp.registry.index import CapabilityIndex
from leeward.policies.dssp.registry.slots import Slots

#: Seconds for which a registration holds unless it is renewed.
LEASE_S = 60.0
#: Slots of entries that have left are given back once they are more than the others and this.
SPARE = 1024
#: Capabilities that an error names at most.
NAMED = 20

Kind = type[ProviderEntry]


class UnmatchedError(FieldError):
    """The question is well formed, and no registration answers it; `field` says for which part of it."""


class HeldError(FieldError):
    """Another owner holds the name."""


@dataclass(slots=True)
class _Held:
    entry: ProviderEntry
    owner: str
    slot: int


class Registry:
    """Domains and providers, each under a lease that its owner renews by registering again.

    `owner` is the authenticated name of the caller.  As long as its lease runs, a name belongs to one owner, who may
    register a domain and a provider under it.  `now` is in seconds and does not fall from one call to the next.
    """

    def __init__(self, lease_s: float = LEASE_S) -> None:
        """Raises FieldError unless the lease is a finite number of seconds greater than 0."""
        check_number("lease_s", lease_s, positive=True)
        self.lease_s = lease_s
        self._held: dict[tuple[Kind, str], _Held] = {}
        self._slots = Slots()
        self._indices: dict[str, CapabilityIndex] = {}

    def register(self, entry: ProviderEntry, owner: str, now: float) -> bool:
        """Hold an entry until `now + lease_s`; one that was registered under its name and kind is replaced.

        True if none was, or its lease was over.  Raises HeldError if another owner holds the name.
        """
        self._check_owner(entry.name, owner, now)
        held = self._held.get((type(entry), entry.name))
        renewed = held is not None and self._runs(held, now)
        if held is not None and _places(held.entry) == _places(entry):
            held.entry, held.owner = entry, owner
            self._slots.entries[held.slot], self._slots.until[held.slot] = entry, now + self.lease_s
            return not renewed
        if held is not None:
            self._remove(held)
        self._hold(entry, owner, now + self.lease_s)
        return not renewed

    def leave(self, kind: Kind, name: str, owner: str, now: float) -> None:
        """End a registration before its lease does; `kind` is DomainEntry or ProviderEntry.

        Raises UnmatchedError if there is none under lease, HeldError if another owner holds the name.
        """
        self._check_owner(name, owner, now)
        self._remove(self._running(kind, name, now))

    def expire(self, now: float) -> tuple[str, ...]:
        """Remove all whose lease is over; their names, in order.

        Answers never have such entries, so this only frees their memory.
        """
        lapsed = [self._slots.entries[slot] for slot in self._slots.lapsed(now)]
        for entry in lapsed:
            self._remove(self._held[type(entry), entry.name])
        return tuple(sorted(entry.name for entry in lapsed))

    def discover(self, capability: str, area: Area, now: float) -> Sequence[DomainEntry]:
        """Domains under lease that offer a capability in some part of an area, one or more, ordered by name.

        Raises UnmatchedError with field `capability` if no domain offers it, with field `area` if the area is outside
        every domain that does; FieldError if the capability is malformed.
        """
        index = self._indices.get(capability)
        found = index.find(area, now) if index is not None else []
        if found:
            return found
        check_capability("capability", capability)
        if index is None or not index.offered(now):
            raise UnmatchedError("capability", capability, "no domain offers it", remedy=self._known(now))
        west, south, east, north = index.hull(now)
        remedy = f"ask within [{west:g}, {south:g}, {east:g}, {north:g}], where they are"
        raise UnmatchedError("area", area.to_json(), f"is outside every domain with {capability!r}", remedy=remedy)

    def find(self, kind: Kind, name: str, now: float) -> ProviderEntry:
        """One entry by its name; `kind` is DomainEntry or ProviderEntry. Raises UnmatchedError if none is there."""
        return self._running(kind, name, now).entry

    def count(self, now: float) -> int:
        """Domains and providers under lease."""
        return self._slots.running(now)

    def _runs(self, held: _Held, now: float) -> bool:
        return bool(self._slots.until[held.slot] > now)

    def _running(self, kind: Kind, name: str, now: float) -> _Held:
        held = self._held.get((kind, name))
        if held is None or not self._runs(held, now):
            what = "domain" if kind is DomainEntry else "provider"
            raise UnmatchedError("name", name, f"no {what} is registered under it", remedy="register it first")
        return held

    def _check_owner(self, name: str, owner: str, now: float) -> None:
        for kind in (DomainEntry, ProviderEntry):
            held = self._held.get((kind, name))
            if held is not None and held.owner != owner and self._runs(held, now):
                raise HeldError("name", name, "another owner holds it", remedy="choose another name")

    def _hold(self, entry: ProviderEntry, owner: str, until: float) -> None:
        slot = self._slots.take(entry, until)
        self._held[type(entry), entry.name] = _Held(entry, owner, slot)
        if isinstance(entry, DomainEntry):
            for capability in entry.capabilities:
                if capability not in self._indices:
                    self._indices[capability] = CapabilityIndex(self._slots)
                self._indices[capability].add(entry.areas, slot)

    def _remove(self, held: _Held) -> None:
        entry = held.entry
        del self._held[type(entry), entry.name]
        self._slots.free(held.slot)
        if isinstance(entry, DomainEntry):
            for capability in entry.capabilities:
                self._indices[capability].forget(entry.areas)
                if self._indices[capability].empty:
                    del self._indices[capability]
        if self._slots.used > 2 * len(self._held) + SPARE:
            self._renumber()

    def _renumber(self) -> None:
        """Give all entries new slots, without gaps."""
        before, held = self._slots.until, list(self._held.values())
        self._slots, self._indices, self._held = Slots(), {}, {}
        for one in held:
            self._hold(one.entry, one.owner, float(before[one.slot]))

    def _known(self, now: float) -> str:
        """A remedy that names capabilities that are offered."""
        known = (name for name in sorted(self._indices) if self._indices[name].offered(now))
        named = ", ".join(islice(known, NAMED))
        return f"ask for one that is offered: {named}" if named else "wait until a domain has registered"


def _places(entry: ProviderEntry) -> object:
    """The part of an entry that is in indices."""
    return (entry.capabilities, entry.areas) if isinstance(entry, DomainEntry) else None
