"""A public network and its routes: pipes that follow from file and spec alone, and the lines that a client sends."""

from __future__ import annotations

import socket
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.errors import ConfigError, NotReadyError
from leeward.core.network import Network
from leeward.core.network_document import network_text, parse_network
from leeward.local import ClusterSpec
from leeward.local.layout import RELAY
from leeward.local.network.emulation import Emulation
from leeward.local.network.measure import Rate, measure
from leeward.local.network.plan import End, Pipes, ends_of, pipes_of, relay_config
from leeward.local.network.routes import Routes


def network(*, links: tuple[dict[str, Any], ...] = (), **public: Any) -> Network:
    """Workers w1, w2, w3 in sites a, b, c, and "cloud" in a; dedicated links from a to b and from b to c."""
    ends = [{"id": "cloud", "site": "a"}, *({"id": f"w{n}", "site": site} for n, site in enumerate("abc", 1))]
    joined = [
        {"between": ["a", "b"], "delay_ms": 10, "rate_mbps": 40},
        {"between": ["b", "c"], "delay_ms": 20, "rate_mbps": 20, "queue_packets": 9, "shared": True},
    ]
    return parse_network({
        "site": [{"id": id} for id in "abc"], "node": ends, "link": [*joined, *links], "seed": 5,
        "public": {"uplink_mbps": 8, "delay_ms": 2, **public},
    })  # fmt: skip


def planned(found: Network) -> tuple[tuple[End, ...], Pipes]:
    ends = ends_of(ClusterSpec(dir=Path("/run-folder"), network=found))
    return ends, pipes_of(found, ends)


# --- pipes


def test_a_public_way_is_the_uplink_of_the_sender_and_a_path_of_its_own():
    pipes = planned(network(sigma=0.5, every_ms=250))[1]
    uplink, path = pipes.ways["w1", "w2"]
    assert pipes.lines[uplink] == "pipe 0 1000000.0 0.0 200000000 - 0.0 0"
    assert pipes.lines[path] == "pipe 2000000 1000000.0 0.0 200000000 - 0.5 250000000"
    assert pipes.ways["w1", "w3"][0] == uplink != pipes.ways["w2", "w3"][0]
    paths = {way[1] for way in pipes.ways.values() if len(way) == 2}
    assert len(paths) == 6
    assert pipes.lines[pipes.ways["cloud", "w2"][0]] == "pipe 0 0 0.0 200000000 - 0.0 0"


def test_dedicated_links_have_pipes_that_no_pair_uses():
    pipes = planned(network())[1]
    assert set(pipes.dedicated) == {("w1", "w2"), ("w2", "w1"), ("w2", "w3"), ("w3", "w2")}
    assert not set(pipes.dedicated.values()) & {number for way in pipes.ways.values() for number in way}
    assert pipes.lines[pipes.dedicated["w1", "w2"]] == "pipe 10000000 5000000.0 0.0 200000000 - 0.0 0"
    assert pipes.lines[pipes.dedicated["w2", "w3"]] == "pipe 20000000 2500000.0 0.0 - 9 0.0 0"
    assert pipes.over(["w1", "w2", "w3"]) == (pipes.dedicated["w1", "w2"], pipes.dedicated["w2", "w3"])


def test_nodes_of_two_sites_share_a_dedicated_link_where_the_file_says_so():
    found = network()
    more = parse_network({
        "site": [{"id": id} for id in "ab"], "public": {"uplink_mbps": 8},
        "node": [{"id": id, "site": id[0]} for id in ("a1", "a2", "b1")] + [{"id": "cloud", "site": "a"}],
        "link": [{"between": ["a", "b"], "shared": True}],
    })  # fmt: skip
    dedicated = planned(more)[1].dedicated
    assert dedicated["a1", "b1"] == dedicated["a2", "b1"] != dedicated["b1", "a1"]
    assert found.dedicated("w1", "w3") is None


def test_the_relay_is_told_all_pipes_of_a_way():
    found = network()
    ends, pipes = planned(found)
    lines = relay_config(found, ends).splitlines()
    assert [line for line in lines if line.startswith("pipe")] == pipes.lines
    uplink, path = pipes.ways["w1", "w2"]
    assert f"pair 1 2 {uplink} {path}" in lines


def test_the_rate_of_a_path_follows_from_seed_number_and_interval_alone():
    found = network(sigma=0.5)
    pipes = planned(found)[1]
    number = pipes.ways["w1", "w2"][1]
    path = pipes.pipes[number]
    rates = [path.rate_mbps(5, number, interval) for interval in range(4000)]
    assert rates == [path.rate_mbps(5, number, interval) for interval in range(4000)]
    assert statistics.median(rates) == pytest.approx(8, rel=0.05)
    assert rates[:9] != [path.rate_mbps(6, number, interval) for interval in range(9)]
    assert rates[:9] != [path.rate_mbps(5, number + 1, interval) for interval in range(9)]
    assert pipes.pipes[number - 1].rate_mbps(5, number - 1, 7) == 8, "an uplink does not vary"


# --- routes


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[socket.socket]:
    """Stands for the relay."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "control.sock"))
        made.settimeout(5)
        yield made


def test_a_route_is_told_in_both_directions_at_once(tmp_path: Path, relay: socket.socket):
    found = network()
    ends, pipes = planned(found)
    routes = Routes(found, ends, tmp_path / "control.sock")
    routes.set("w1", "w3", 6700, ["w1", "w2", "w3"])
    there, back = pipes.over(["w1", "w2", "w3"]), pipes.over(["w3", "w2", "w1"])
    assert relay.recv(1000).decode() == (
        f"route 1 3 6700 {there[0]} {there[1]}\nroute 3 1 6700 {back[0]} {back[1]}"
    )  # fmt: skip
    routes.set("w1", "w3", 6700)
    there, back = pipes.ways["w1", "w3"], pipes.ways["w3", "w1"]
    assert relay.recv(1000).decode() == (
        f"route 1 3 6700 {there[0]} {there[1]}\nroute 3 1 6700 {back[0]} {back[1]}"
    )  # fmt: skip
    routes.clear("w1", "w3", 6700)
    assert relay.recv(1000) == b"unroute 1 3 6700\nunroute 3 1 6700"


@pytest.mark.parametrize(
    ("a", "b", "port", "way", "said"),
    [
        ("w1", "w3", 80, ["w1", "w3"], r"way: no dedicated link leads from 'w1' to 'w3'\. Add a \[\[link\]\]"),
        ("w1", "w3", 80, ["w1", "w2"], r"way: \['w1', 'w2'\] is not from 'w1' to 'w3'"),
        ("w1", "w1", 80, ["w1"], "route: 'w1' to 'w1', port 80: is none. Give two nodes"),
        ("w1", "w3", 0, [], "port 0: is none"),
        ("w1", "w9", 80, [], "route: 'w9' is no node. There are: cloud, w1"),
        ("cloud", "w2", 80, ["cloud", "w2"], "no dedicated link leads from 'cloud' to 'w2'"),
    ],
)
def test_a_route_that_cannot_be_is_refused(
    tmp_path: Path, relay: socket.socket, a: str, b: str, port: int, way: list[str], said: str
):
    found = network()
    with pytest.raises(ConfigError, match=said):
        Routes(found, planned(found)[0], tmp_path / "control.sock").set(a, b, port, way)
    relay.setblocking(False)
    with pytest.raises(BlockingIOError):
        relay.recv(10)


def test_a_link_in_one_direction_has_no_way_back(tmp_path: Path, relay: socket.socket):
    found = network(links=({"from": "c", "to": "a"},))
    with pytest.raises(ConfigError, match="leads from 'w1' to 'w3'"):
        Routes(found, planned(found)[0], tmp_path / "control.sock").set("w3", "w1", 80, ["w3", "w1"])


def test_a_relay_that_does_not_listen_is_named(tmp_path: Path):
    found = network()
    routes = Routes(found, planned(found)[0], tmp_path / "control.sock")
    with pytest.raises(NotReadyError, match=r"relay: it does not listen at .*control\.sock \(No such file"):
        routes.clear("w1", "w2", 80)


def test_a_folder_of_too_long_a_path_is_refused(tmp_path: Path):
    found = network()
    folder = tmp_path / ("x" * 107)
    with pytest.raises(ConfigError, match=r"dir: the socket .* at most 107 are possible\. Give a shorter --dir"):
        Routes(found, planned(found)[0], folder / "control.sock")


def test_only_a_network_with_a_public_one_has_routes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("leeward.local.network.emulation.relay_program", lambda kept: kept / "relay")
    plain = parse_network({"site": [{"id": "a"}], "node": [{"id": id, "site": "a"} for id in ("cloud", "w1")]})
    emulation = Emulation(ClusterSpec(dir=tmp_path, network=plain))
    assert len(emulation.command_of(RELAY, tmp_path, [])) == 3
    with pytest.raises(ConfigError, match="it has no public network, so its routes do not change"):
        emulation.routes()
    emulation = Emulation(ClusterSpec(dir=tmp_path, network=network()))
    assert emulation.command_of(RELAY, tmp_path, [])[3] == str(tmp_path / "network" / "control.sock")
    assert isinstance(emulation.routes(), Routes)


# --- what is measured


@pytest.mark.parametrize(("sigma", "measured"), [(0.0, 6), (1.0, 0)])
def test_only_rates_that_do_not_vary_are_compared_with_the_file(
    monkeypatch: pytest.MonkeyPatch, sigma: float, measured: int
):
    class Prober:
        def __init__(self, *_: object) -> None: ...

        def round_trips(self, *_: object) -> tuple[()]:
            return ()

        def rate(self, a: int, b: int, _: int) -> Rate:
            return Rate(source=str(a), target=str(b), expected_mbps=8, mbps=8)

    monkeypatch.setattr("leeward.local.network.measure._Prober", Prober)
    monkeypatch.setattr("leeward.local.network.measure.datagrams", lambda end: socket.socket())
    found = network(sigma=sigma)
    assert len(measure(found, planned(found)[0]).rates) == measured


def test_check_prints_the_medians_of_public_paths(tmp_path: Path):
    file = tmp_path / "net.toml"
    file.write_text(network_text(network(sigma=1.0)))
    done = CliRunner().invoke(_build(), ["network", "check", str(file)], env={"COLUMNS": "200"})
    rows = {line.split()[0]: line.split()[1:] for line in done.output.splitlines()[1:5]}
    assert done.exit_code == 0
    assert rows["w1"] == ["0", "-", "4", "8M", "4", "8M"] and rows["cloud"] == ["-", "0", "0", "0"]
