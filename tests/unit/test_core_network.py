"""A network file: what it gives for each pair of nodes, and what is said of a wrong one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import ConfigError
from leeward.core.network import Link, Network, NetworkNode, Public, Site
from leeward.core.network_document import network_document, network_text, parse_network

EXAMPLE = Path(__file__).parents[2] / "storm_conf" / "networks" / "three_sites.toml"


def network(text: str, sites: str = "abc") -> Network:
    """A node for each site, "cloud" in the first; `text` has the links."""
    lines = [f'[[site]]\nid = "{site}"\n[[node]]\nid = "{site}-1"\nsite = "{site}"' for site in sites]
    lines.append(f'[[node]]\nid = "cloud"\nsite = "{sites[0]}"')
    return parse_network(tomllib.loads(text + "\n" + "\n".join(lines)))


def joined(a: str, b: str, **more: Any) -> str:
    return f'[[link]]\nbetween = ["{a}", "{b}"]\n' + "\n".join(f"{key} = {value}" for key, value in more.items()) + "\n"


def one_way(a: str, b: str, **more: Any) -> str:
    return joined(a, b, **more).replace(f'between = ["{a}", "{b}"]', f'from = "{a}"\nto = "{b}"')


def test_the_example():
    found = parse_network(tomllib.loads(EXAMPLE.read_text()))
    assert found.nimbus.id == "cloud"
    assert [node.id for node in found.workers] == ["core-1", "north-1", "north-2", "south-1"]
    assert found.pair("cloud", "north-1") == Link(delay_ms=20, rate_mbps=100)
    assert found.pair("cloud", "core-1") == Link(delay_ms=0.5)
    assert found.pair("north-1", "south-1") == Link(delay_ms=80, rate_mbps=20, queue_ms=300), "by way of core"
    assert found.round_trip_ms("south-1", "north-2") == 160


def test_both_directions_are_alike_unless_one_is_said():
    found = network(joined("a", "b", delay_ms=10, rate_mbps=50) + one_way("b", "a", delay_ms=30), "ab")
    assert found.pair("a-1", "b-1") == Link(delay_ms=10, rate_mbps=50)
    assert found.pair("b-1", "a-1") == Link(delay_ms=30)
    assert found.round_trip_ms("a-1", "b-1") == found.round_trip_ms("b-1", "a-1") == 40


def test_one_way_links_alone_make_a_network():
    ring = one_way("a", "b", delay_ms=1) + one_way("b", "c", delay_ms=2) + one_way("c", "a", delay_ms=4)
    found = network(ring)
    assert found.pair("a-1", "c-1").delay_ms == 3
    assert found.pair("c-1", "b-1").delay_ms == 5


def test_a_link_of_their_own_goes_before_a_faster_way_round():
    found = network(joined("a", "b", delay_ms=1) + joined("b", "c", delay_ms=1) + joined("a", "c", delay_ms=50))
    assert found.pair("a-1", "c-1").delay_ms == 50


def test_on_a_way_over_several_links_the_narrowest_counts_and_losses_are_independent():
    wide = joined("a", "b", delay_ms=1, rate_mbps=100, loss=0.1, queue_packets=7)
    narrow = joined("b", "c", delay_ms=2, rate_mbps=10, loss=0.5, queue_ms=30, shared="true")
    found = network(wide + narrow).pair("a-1", "c-1")
    assert found.loss == pytest.approx(0.55)
    expected = Link(delay_ms=3, rate_mbps=10, loss=found.loss, queue_ms=30, shared=True)
    assert found == expected


def test_of_two_ways_with_the_same_delay_the_one_of_fewer_links_and_then_of_smaller_ids_is_taken():
    long = joined("a", "b", delay_ms=0, rate_mbps=1) + joined("b", "c", delay_ms=5, rate_mbps=1)
    short = joined("a", "e", delay_ms=5, rate_mbps=2) + joined("a", "d", delay_ms=5, rate_mbps=3)
    found = network(
        long + joined("c", "z", delay_ms=5) + short + joined("d", "z", delay_ms=5) + joined("e", "z", delay_ms=5),
        "abcdez",
    )
    assert found.pair("a-1", "z-1").rate_mbps == 3


def test_inside_is_said_once_and_for_single_sites_otherwise():
    document = tomllib.loads(EXAMPLE.read_text())
    document["site"][1]["inside"] = {"rate_mbps": 5, "queue_packets": 3}
    found = parse_network(document)
    assert found.pair("north-1", "north-2") == Link(delay_ms=0.5, rate_mbps=5, queue_ms=None, queue_packets=3)
    assert found.pair("cloud", "core-1") == Link(delay_ms=0.5)
    assert found.pair("cloud", "cloud") == Link()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[inside]\ndelay_ms = -1", r"inside: delay_ms: -1 is not allowed\. Give a number from 0 to 10000"),
        ("[inside]\ndelay_ms = nan", "inside: delay_ms: nan is not allowed"),
        ("[inside]\nrate_mbps = true", "inside: rate_mbps: True is not allowed"),
        ("[inside]\nrate_mbps = 0", r"rate_mbps: 0 is not allowed\. Give a number from 0.01"),
        (joined("a", "b", loss=1.5), r"link 1: loss: 1\.5 is not allowed\. Give a number from 0 to 1\."),
        (joined("a", "b", queue_ms=1, queue_packets=1), "queue_packets: 1 is not allowed. Give either it or queue_ms"),
        (joined("a", "b", queue_packets=0), "queue_packets: 0 is not allowed. Give a whole number from 1"),
        (joined("a", "b", shared=1), "shared: 1 is not allowed. Give true or false"),
        (joined("a", "b", dealy_ms=1), r"link 1: dealy_ms: 1 is not known here\. Known: between, queue_packets"),
        (joined("a", "d"), r"link 'a' to 'd': 'd' is no site\. There are: a, b, c"),
        (joined("a", "a"), "link 'a' to 'a': joins a site with itself. Say `inside`"),
        (joined("a", "b") + joined("b", "a"), "link 2: between: 'b to a' is not allowed. Say it once"),
        (one_way("a", "b"), r"no way leads from site 'a' to site 'c'\. Add \[\[link\]\] between = \[\"a\", \"c\"\]"),
        ('[[link]]\nbetween = ["a"]', "between: \\['a'\\] is not allowed. Give two sites"),
        ('[[link]]\nfrom = "a"', "link 1: to: None is not allowed"),
        ("mtu = 100", "network: mtu: 100 is not allowed. Give a whole number from 1280 to 65000"),
        ("seed = 1.5", "network: seed: 1.5 is not allowed"),
        ('inside = "near"', "network: inside: 'near' is no table"),
        ("link = 3", r"network: link: 3 is not allowed\. Write \[\[link\]\]"),
        ("sites = 3", "network: sites: 3 is not known here"),
    ],
)
def test_a_wrong_file_is_refused_with_field_value_and_remedy(text: str, said: str):
    with pytest.raises(ConfigError, match=said):
        network(text)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([("Cloud", "a")], "node 1: id: 'Cloud' is not allowed"),
        ([("cloud", "b"), ("a-1", "a")], "node 'cloud': site: 'b' is no site"),
        ([("cloud", "a")], "node: none has the role 'worker'"),
        ([("a-1", "a")], "node: role 'nimbus' is that of no node"),
        ([("cloud", "a"), ("a-1", "a"), ("a-1", "a")], "node: 'a-1' is there twice"),
        ([("cloud", "a"), ("a-1", "a", "nimbus")], "role 'nimbus' is that of cloud, a-1"),
        ([("cloud", "a"), ("a-1", "a", "boss")], "node 2: role: 'boss' is not allowed. Choose one of worker, nimbus"),
    ],
)
def test_wrong_nodes_are_refused(nodes: list[tuple[str, ...]], said: str):
    entries = [dict(zip(("id", "site", "role"), node, strict=False)) for node in nodes]
    with pytest.raises(ConfigError, match=said):
        parse_network({"site": [{"id": "a"}], "node": entries})


def test_another_node_may_have_nimbus():
    found = parse_network({"site": [{"id": "a"}], "node": [
        {"id": "cloud", "site": "a", "role": "worker"}, {"id": "head", "site": "a", "role": "nimbus"},
    ]})  # fmt: skip
    assert (found.nimbus.id, [node.id for node in found.workers]) == ("head", ["cloud"])


LINKS = st.builds(
    Link,
    delay_ms=st.floats(0, 10_000),
    rate_mbps=st.none() | st.floats(0.01, 100_000),
    loss=st.floats(0, 1),
    queue_ms=st.floats(0, 60_000),
    shared=st.booleans(),
) | st.builds(Link, queue_ms=st.none(), queue_packets=st.integers(1, 1_000_000))

PUBLIC = st.builds(
    Public,
    uplink_mbps=st.floats(0.01, 100_000),
    delay_ms=st.floats(0, 10_000),
    sigma=st.floats(0, 4),
    every_ms=st.floats(1, 3_600_000),
    uneven=st.floats(0, 4),
    queue_ms=st.none() | st.floats(0, 60_000),
)


@given(st.data())
def test_a_network_equals_what_is_read_from_its_document(data: st.DataObject):
    ids = [f"s{i}" for i in range(data.draw(st.integers(1, 4)))]
    pairs = [(a, b) for a in ids for b in ids if a != b]
    found = Network(
        sites=tuple(Site(id=id, inside=data.draw(LINKS)) for id in ids),
        nodes=(NetworkNode(id="head", site=ids[0], role="nimbus"), *(NetworkNode(id=f"n-{id}", site=id) for id in ids)),
        links={pair: data.draw(LINKS) for pair in pairs},
        seed=data.draw(st.integers(0, 2**63 - 1)),
        mtu=data.draw(st.integers(1280, 65_000)),
        public=data.draw(st.none() | PUBLIC),
    )
    assert parse_network(network_document(found)) == found
    assert parse_network(tomllib.loads(network_text(found))) == found


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(0, 9)), min_size=3))
def test_a_way_is_never_slower_than_any_other(links: list[tuple[str, str, int]]):
    """Against all ways there are, for sites that no link of their own joins."""
    own = {(a, b): Link(delay_ms=delay) for a, b, delay in links if a != b}
    own |= {(b, a): link for (a, b), link in own.items()}
    nodes = (NetworkNode(id="head", site="a", role="nimbus"), *(NetworkNode(id=f"n-{id}", site=id) for id in "abcd"))
    try:
        found = Network(sites=tuple(Site(id=id) for id in "abcd"), nodes=nodes, links=own)
    except ConfigError as error:
        assert "no way leads" in str(error)
        return
    best = {(a, b): own[a, b].delay_ms if (a, b) in own else float("inf") for a in "abcd" for b in "abcd" if a != b}
    for middle in "abcd":
        for a, b in best:
            if middle not in (a, b):
                best[a, b] = min(best[a, b], best[a, middle] + best[middle, b])
    for (a, b), delay in best.items():
        assert found.pair(f"n-{a}", f"n-{b}").delay_ms == (own[a, b].delay_ms if (a, b) in own else delay)


# --- a public network


def public(more: str = "", *, links: str = "", node: str = "") -> Network:
    """Workers a-1 and a-2 in site a with "cloud", and b-1 and c-1."""
    text = f'[public]\nuplink_mbps = 8\ndelay_ms = 5\n{more}\n{links}[[node]]\nid = "a-2"\nsite = "a"\n{node}\n'
    return network("[inside]\ndelay_ms = 1\n" + text)


def test_workers_of_different_sites_reach_each_other_over_the_public_network():
    found = public(links=joined("a", "b", delay_ms=70, rate_mbps=3))
    assert found.public == Public(uplink_mbps=8, delay_ms=5)
    assert found.pair("a-1", "b-1") == found.pair("b-1", "c-1") == Link(delay_ms=5, rate_mbps=8)
    assert found.round_trip_ms("a-1", "b-1") == 10
    assert found.between("a", "b") == Link(delay_ms=5, rate_mbps=8)
    assert found.pair("a-1", "a-2") == Link(delay_ms=1), "as in any network"
    assert found.is_public("a-1", "b-1") and not found.is_public("a-1", "a-2") and not found.is_public("cloud", "b-1")


def test_nothing_delays_the_node_of_nimbus_in_a_network_with_a_public_one():
    found = public(links=joined("a", "b", delay_ms=70))
    for other in ("a-1", "b-1", "c-1"):
        assert found.pair("cloud", other) == found.pair(other, "cloud") == Link()


def test_a_link_is_dedicated_to_the_routes_of_two_workers():
    found = public(links=joined("a", "b", delay_ms=70) + one_way("b", "c", delay_ms=30))
    assert found.dedicated("a-1", "b-1") == found.dedicated("b-1", "a-2") == Link(delay_ms=70)
    assert found.dedicated("b-1", "c-1") == Link(delay_ms=30)
    for a, b in (("c-1", "b-1"), ("a-1", "c-1"), ("a-1", "a-2"), ("a-1", "a-1"), ("cloud", "b-1")):
        assert found.dedicated(a, b) is None
    without = network(joined("a", "b") + joined("b", "c"))
    assert without.dedicated("a-1", "b-1") is None, "everything takes it"


def test_a_path_has_a_median_of_its_own_by_seed_and_ids_alone():
    found, more = public("uneven = 0.5"), public("uneven = 0.5\nsigma = 1", links=joined("a", "b"))
    pairs = [(a, b) for a in ("a-1", "b-1", "c-1") for b in ("a-1", "b-1", "c-1") if a != b]
    medians = [found.path_median_mbps(*pair) for pair in pairs]
    assert medians == [more.path_median_mbps(*pair) for pair in pairs]
    assert len(set(medians)) == 6 and all(8 / 2**2.5 < median < 8 * 2**2.5 for median in medians), "five deviations"
    assert found.pair("a-1", "b-1").rate_mbps == medians[0]
    assert replace(found, seed=1).path_median_mbps("a-1", "b-1") != medians[0]
    assert public().path_median_mbps("a-1", "b-1") == 8


def test_a_node_may_have_an_uplink_of_its_own():
    found = public("uneven = 0.5", node="uplink_mbps = 2")
    assert (found.uplink_mbps("a-2"), found.uplink_mbps("a-1")) == (2, 8)
    assert public(node="uplink_mbps = 2").pair("a-2", "b-1").rate_mbps == 2
    assert found.path_median_mbps("a-2", "b-1") / 2 == pytest.approx(
        public("uneven = 0.5").path_median_mbps("a-2", "b-1") / 8
    )
    with pytest.raises(ConfigError, match=r"it has no public network\. Add \[public\]"):
        network("", "a").uplink_mbps("a-1")


def test_packets_may_wait_as_long_as_it_takes():
    found = public('queue_ms = "none"')
    assert found.pair("a-1", "b-1") == Link(delay_ms=5, rate_mbps=8, queue_ms=None)
    assert parse_network(network_document(found)) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[public]", r"network: public: uplink_mbps: None is not allowed\. Give a number from 0\.01 to 100000"),
        ("[public]\nuplink_mbps = 0", "public: uplink_mbps: 0 is not allowed"),
        ("[public]\nuplink_mbps = 1\nsigma = 4.5", r"public: sigma: 4\.5 is not allowed\. Give a number from 0 to 4"),
        ("[public]\nuplink_mbps = 1\nuneven = -1", "public: uneven: -1 is not allowed"),
        ("[public]\nuplink_mbps = 1\nevery_ms = 0", r"every_ms: 0 is not allowed\. Give a number from 1 to 3\.6e\+06"),
        ("[public]\nuplink_mbps = 1\ndelay_ms = 1e9", "public: delay_ms: 1000000000.0 is not allowed"),
        ('[public]\nuplink_mbps = 1\nqueue_ms = "all"', "public: queue_ms: 'all' is not allowed"),
        ("[public]\nuplink_mbps = 1\nloss = 0.1", "public: loss: 0.1 is not known here. Known: uplink_mbps, delay_ms"),
        ("public = 3", "network: public: 3 is no table"),
        ('[[node]]\nid = "x"\nsite = "a"\nuplink_mbps = -1', "node 1: uplink_mbps: -1 is not allowed"),
        ('[[node]]\nid = "x"\nsite = "a"\nuplink_mbps = 3', "'x': uplink_mbps: 3 has no meaning: there is no public"),
        (
            '[public]\nuplink_mbps = 1\n[[node]]\nid = "x"\nsite = "a"\nuplink_mbps = 3\nrole = "nimbus"',
            "node 'x': uplink_mbps: 3 has no meaning: the node is no worker. Leave it out",
        ),
    ],
)
def test_a_wrong_public_network_is_refused_with_field_value_and_remedy(text: str, said: str):
    nodes = '[[site]]\nid = "a"\n[[node]]\nid = "a-1"\nsite = "a"\n'
    with pytest.raises(ConfigError, match=said):
        parse_network(tomllib.loads(text + "\n" + nodes + ("" if "nimbus" in text else CLOUD)))


CLOUD = '[[node]]\nid = "cloud"\nsite = "a"\n'
META = 'meta = { class = "edge", speed = 0.05, recharge_s = 86400, spare = true }\n'


def test_facts_of_a_node_are_texts_and_come_back():
    text = '[[site]]\nid = "a"\n[[node]]\nid = "cloud"\nsite = "a"\n[[node]]\nid = "n"\nsite = "a"\n' + META
    found = parse_network(tomllib.loads(text))
    assert found.node("n").meta == {"class": "edge", "speed": "0.05", "recharge_s": "86400", "spare": "true"}
    assert found.node("cloud").meta == {}
    assert parse_network(network_document(found)) == found


@pytest.mark.parametrize(
    ("meta", "said"),
    [('"edge"', "meta: 'edge'"), ("{ speed = [1] }", r"meta.speed: \[1\]"), ("{ speed = inf }", "meta.speed: inf"),
     ('{ "a b" = 1 }', "meta: 'a b'")],
)  # fmt: skip
def test_a_wrong_fact_is_named(meta: str, said: str):
    text = f'[[site]]\nid = "a"\n[[node]]\nid = "cloud"\nsite = "a"\nmeta = {meta}\n'
    with pytest.raises(ConfigError, match=said):
        parse_network(tomllib.loads(text))
