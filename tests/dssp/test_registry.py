"""The registry: leases, owners, and discovery against a search of all entries."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.registry import index as boxes
from leeward.policies.dssp.registry import registry as module
from leeward.policies.dssp.registry.entries import DomainEntry, ProviderEntry
from leeward.policies.dssp.registry.registry import HeldError, Registry, UnmatchedError
from tests.helpers.dssp_areas import areas

HERE, THERE = Area(0, 0, 10, 10), Area(50, 50, 60, 60)
LEASE_S = 10.0


def domain(name: str, *where: Area, capabilities: tuple[str, ...] = ("camera",), host: str = "host") -> DomainEntry:
    return DomainEntry(name=name, url=f"https://{host}", capabilities=capabilities, areas=where or (HERE,))


@pytest.fixture
def registry() -> Registry:
    return Registry(LEASE_S)


def test_domains_are_found_by_capability_and_area_in_the_order_of_their_names(registry):
    for name in "cab":
        registry.register(domain(name), name, now=0)
    registry.register(domain("far", THERE), "far", now=0)
    registry.register(domain("deaf", capabilities=("sound",)), "deaf", now=0)
    assert [entry.name for entry in registry.discover("camera", Area(5, 5, 70, 20), now=1)] == ["a", "b", "c"]
    assert [entry.name for entry in registry.discover("camera", Area(10, 10, 50, 50), now=1)] == ["a", "b", "c", "far"]


def test_a_domain_with_several_matching_areas_is_found_once(registry):
    registry.register(domain("a", HERE, Area(5, 5, 8, 8), Area(170, 0, -170, 10)), "a", now=0)
    assert len(registry.discover("camera", Area(-180, -90, 180, 90), now=1)) == 1


def test_a_lease_is_renewed_by_registering_again(registry):
    assert registry.register(domain("a"), "a", now=0)
    assert not registry.register(domain("a"), "a", now=8)
    assert registry.discover("camera", HERE, now=17.9) and registry.count(17.9) == 1
    assert registry.count(18) == 0
    with pytest.raises(UnmatchedError, match="no domain offers it"):
        registry.discover("camera", HERE, now=18)
    assert registry.expire(17.9) == () and registry.expire(18) == ("a",) and registry.expire(18) == ()


def test_a_lapsed_lease_can_be_taken_up_again(registry):
    registry.register(domain("a"), "a", now=0)
    assert registry.register(domain("a"), "a", now=20), "its lease was over"
    assert registry.discover("camera", HERE, now=29)


def test_a_changed_entry_replaces_the_one_before(registry):
    registry.register(domain("a"), "a", now=0)
    moved = domain("a", THERE, capabilities=("sound",), host="other")
    assert not registry.register(moved, "a", now=1)
    assert registry.discover("sound", THERE, now=2) == [moved]
    with pytest.raises(UnmatchedError, match=r"capability = 'camera': no domain offers it\..*offered: sound"):
        registry.discover("camera", HERE, now=2)
    elsewhere = domain("a", THERE, capabilities=("sound",), host="third")
    registry.register(elsewhere, "a", now=3)
    assert registry.discover("sound", THERE, now=4) == [elsewhere]


def test_a_name_belongs_to_its_owner_while_the_lease_runs(registry):
    registry.register(domain("a"), "one", now=0)
    for entry in (domain("a"), ProviderEntry(name="a", url="https://a")):
        with pytest.raises(HeldError, match=r"name = 'a': another owner holds it\. Choose another name"):
            registry.register(entry, "two", now=1)
    with pytest.raises(HeldError):
        registry.leave(DomainEntry, "a", "two", now=1)
    assert registry.register(ProviderEntry(name="a", url="https://a"), "one", now=1), "an organisation may be both"
    assert registry.register(domain("a"), "two", now=12)


def test_those_that_left_are_gone(registry):
    registry.register(domain("a"), "a", now=0)
    registry.register(ProviderEntry(name="p", url="https://p"), "p", now=0)
    assert registry.find(ProviderEntry, "p", now=1).url == "https://p"
    registry.leave(ProviderEntry, "p", "p", now=1)
    registry.leave(DomainEntry, "a", "a", now=1)
    for kind, name in ((ProviderEntry, "p"), (DomainEntry, "a"), (DomainEntry, "never")):
        with pytest.raises(UnmatchedError, match="is registered under it"):
            registry.leave(kind, name, "a", now=2)
    with pytest.raises(UnmatchedError, match="Wait until a domain has registered"):
        registry.discover("camera", HERE, now=2)


def test_an_unknown_capability_and_an_area_outside_are_told_apart(registry):
    registry.register(domain("a", HERE, THERE), "a", now=0)
    with pytest.raises(UnmatchedError, match=r"no domain offers it\. Ask for one that is offered: camera") as caught:
        registry.discover("radar", HERE, now=1)
    assert caught.value.field == "capability"
    with pytest.raises(UnmatchedError, match=r"outside every domain with 'camera'.*\[0, 0, 60, 60\]") as caught:
        registry.discover("camera", Area(20, 20, 30, 30), now=1)
    assert caught.value.field == "area" and caught.value.value == [20, 20, 30, 30]


@pytest.mark.parametrize("capability", ["", " ", "a\nb", "c" * 129])
def test_a_malformed_capability_is_not_merely_unknown(registry, capability):
    with pytest.raises(FieldError, match="not the name of a capability") as caught:
        registry.discover(capability, HERE, now=0)
    assert not isinstance(caught.value, UnmatchedError)


@pytest.mark.parametrize("lease_s", [0, -1, float("nan"), float("inf")])
def test_a_lease_is_a_number_of_seconds(lease_s):
    with pytest.raises(FieldError, match="lease_s"):
        Registry(lease_s)


def test_thousands_of_changes_leave_no_slots_behind(registry):
    for turn in range(5000):
        registry.register(domain("a", Area(turn % 100, 0, 100, 10)), "a", now=turn)
    assert registry._slots.used < 2 * module.SPARE
    assert registry.discover("camera", Area(100, 0, 101, 1), now=5000)


class Slow:
    """The registry by definition: every entry, owner and lease in one dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[DomainEntry, str, float]] = {}

    def running(self, now: float) -> dict[str, tuple[DomainEntry, str, float]]:
        return {name: held for name, held in self.held.items() if held[2] > now}

    def others(self, name: str, owner: str, now: float) -> bool:
        running = self.running(now)
        return name in running and running[name][1] != owner

    def register(self, entry: DomainEntry, owner: str, now: float) -> bool | str:
        if self.others(entry.name, owner, now):
            return "HeldError name"
        new = entry.name not in self.running(now)
        self.held[entry.name] = (entry, owner, now + LEASE_S)
        return new

    def leave(self, name: str, owner: str, now: float) -> str | None:
        if self.others(name, owner, now):
            return "HeldError name"
        if name not in self.running(now):
            return "UnmatchedError name"
        del self.held[name]
        return None

    def expire(self, now: float) -> tuple[str, ...]:
        gone = self.held.keys() - self.running(now).keys()
        for name in gone:
            del self.held[name]
        return tuple(sorted(gone))

    def discover(self, capability: str, area: Area, now: float) -> list[DomainEntry] | str:
        having = [entry for entry, _, _ in self.running(now).values() if capability in entry.capabilities]
        found = [entry for entry in having if any(area.intersects(other) for other in entry.areas)]
        if found:
            return sorted(found, key=lambda entry: entry.name)
        return "UnmatchedError area" if having else "UnmatchedError capability"


NAMES, OWNERS = st.sampled_from("abcdefgh"), st.sampled_from(["one", "one", "one", "two"])
CAPABILITIES = st.sampled_from(["camera", "sound", "heat"])
STEPS = st.one_of(
    st.tuples(
        st.just("register"),
        st.builds(
            domain, NAMES, areas(30), areas(30), host=st.sampled_from(["h", "i"]),
            capabilities=st.lists(CAPABILITIES, min_size=1, unique=True).map(tuple),
        ),
        OWNERS,
    ),
    st.tuples(st.just("leave"), NAMES, OWNERS),
    st.tuples(st.just("expire")),
    st.tuples(st.just("discover"), CAPABILITIES, areas(30)),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 4), STEPS), max_size=40), st.integers(0, 6), st.integers(0, 10))
def test_any_history_answers_like_a_search_of_all_entries(history, least, spare):
    fast, slow, now = Registry(LEASE_S), Slow(), 0.0
    with patch.object(boxes, "LEAST", least), patch.object(module, "SPARE", spare):
        for waited, (step, *about) in history:
            now += waited
            wanted = getattr(slow, step)(*about, now)
            try:
                call = fast.leave if step == "leave" else getattr(fast, step)
                got = call(DomainEntry, *about, now) if step == "leave" else call(*about, now)
            except (HeldError, UnmatchedError) as error:
                got = f"{type(error).__name__} {error.field}"
            assert got == wanted
            assert fast.count(now) == len(slow.running(now))
