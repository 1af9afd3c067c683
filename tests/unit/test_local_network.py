"""What an emulated network consists of follows from spec and file alone; and what is said where there can be none."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.errors import ConfigError
from leeward.core.network import Network
from leeward.core.network_document import parse_network
from leeward.local import ClusterSpec, layout_of, render
from leeward.local.errors import FolderError, NotInstalledError
from leeward.local.layout import subnet_of
from leeward.local.network import namespaces
from leeward.local.network.measure import rate_of
from leeward.local.network.plan import OUTSIDE, end_of, ends_of, hosts, inside, prefix_of, relay_config, set_up
from leeward.local.network.statistics import PairStatistics, PipeStatistics, parse_statistics
from leeward.local.preflight import claim_folder
from leeward.local.processes import process_of
from leeward.local.record import Record, read_record, write_record

EXAMPLE = Path(__file__).parents[2] / "storm_conf" / "networks" / "three_sites.toml"


def example() -> Network:
    return parse_network(tomllib.loads(EXAMPLE.read_text()))


def spec_of(folder: Path = Path("/run-folder"), **more: object) -> ClusterSpec:
    return ClusterSpec(**{"dir": folder, "network": example(), **more})


# --- names and addresses


def test_a_node_has_its_name_of_the_file_and_an_address_of_its_own():
    layout = layout_of(spec_of())
    assert (layout.host, layout.emulated) == ("198.18.51.1", True)
    assert [(node.name, node.address) for node in layout.nodes] == [
        ("core-1", "198.18.51.11"),
        ("north-1", "198.18.51.12"),
        ("north-2", "198.18.51.13"),
        ("south-1", "198.18.51.14"),
    ]
    assert layout.daemons[0] == "relay" and layout.port_of("relay") == 0
    assert layout.host_of("supervisor-2") == "198.18.51.12" and layout.host_of("nimbus") == layout.host
    assert set(layout.purposes().values()) >= {"nimbus", "redis", "zookeeper"} and 0 not in layout.purposes()


def test_without_emulation_the_same_nodes_are_on_loopback():
    spec = spec_of(emulated=False)
    layout = layout_of(spec)
    assert spec.supervisors == 4
    assert (layout.host, layout.emulated, "relay" in layout.daemons) == ("127.0.0.1", False, False)
    assert [node.name for node in layout.nodes] == [node.address for node in layout.nodes]
    assert layout.nodes[0].name == "127.0.0.11"


def test_without_a_network_nothing_is_emulated():
    assert not ClusterSpec(dir=Path("x")).emulated


def test_blocks_of_ports_that_are_128_apart_have_subnets_of_their_own():
    subnets = [subnet_of(base) for base in range(1024, 65536, 128)]
    assert len(set(subnets)) == len(subnets)
    assert {subnet.rpartition(".")[0] for subnet in subnets} == {"198.18", "198.19"}


def test_a_network_of_too_many_workers_is_refused():
    nodes = [{"id": "cloud", "site": "a"}, *({"id": f"n{i}", "site": "a"} for i in range(61))]
    with pytest.raises(ConfigError, match="supervisors: 61 is out of range"):
        ClusterSpec(dir=Path("x"), network=parse_network({"site": [{"id": "a"}], "node": nodes}))


def test_names_in_the_kernel_say_which_run_folder_they_belong_to(tmp_path: Path):
    ends = ends_of(spec_of(tmp_path))
    prefix = prefix_of(tmp_path)
    assert len(prefix) <= 15, "a device's name"
    assert prefix != prefix_of(tmp_path / "other")
    assert [end.namespace for end in ends[:2]] == [f"{prefix}-cloud", f"{prefix}-core-1"]
    assert (ends[-1].node, ends[-1].namespace, ends[-1].device) == (OUTSIDE, None, prefix)
    assert ends[-1].address == "198.18.51.254"
    assert end_of(spec_of(tmp_path), "redis").node == "cloud"
    assert end_of(spec_of(tmp_path), "supervisor-4").node == "south-1"


def test_every_configuration_names_the_addresses_of_the_network():
    spec = spec_of()
    layout = layout_of(spec)
    settings = render.storm_settings({}, spec, layout)
    assert settings["nimbus.seeds"] == settings["storm.zookeeper.servers"] == ["198.18.51.1"]
    assert settings["leeward.redis.url"] == "redis://198.18.51.1:6622/0"
    assert "clientPortAddress=198.18.51.1\n" in render.zoo_cfg(spec, layout)
    assert render.redis_conf(spec, layout, "x").startswith("bind 198.18.51.1\n")


# --- what is told to whom


def test_the_relay_is_told_each_direction():
    ends = ends_of(spec_of(Path("/run-folder")))
    prefix = prefix_of(Path("/run-folder"))
    lines = relay_config(example(), ends).splitlines()
    assert lines[0] == "net 198.18.51 1 9000"
    assert lines[1] == f"end /run/netns/{prefix}-cloud lw0 1"
    assert lines[6] == f"end - {prefix} 254"
    assert lines[7:9] == ["pipe 500000 0 0.0 200000000 - 0.0 0", "pipe 20000000 12500000.0 0.0 200000000 - 0.0 0"]
    pairs = [line for line in lines if line.startswith("pair")]
    assert pairs[:2] == ["pair 0 1 0", "pair 0 2 1"] and len(pairs) == 6 * 5
    assert pairs[-1] == "pair 5 4 29" and lines[7 + 29] == "pipe 0 0 0.0 200000000 - 0.0 0", "outside, nothing delays"


def test_nodes_of_two_sites_share_a_pipe_where_the_file_says_so():
    document = tomllib.loads(EXAMPLE.read_text())
    document["link"][0] |= {"shared": True, "queue_packets": 50}
    network = parse_network(document)
    lines = relay_config(network, ends_of(spec_of(network=network))).splitlines()
    pipes = [line for line in lines if line.startswith("pipe")]
    used = {tuple(line.split()[1:3]): int(line.split()[3]) for line in lines if line.startswith("pair")}
    assert used["0", "2"] == used["0", "3"] == used["1", "2"] == used["1", "3"] != used["2", "0"]
    assert used["2", "0"] == used["3", "1"]
    assert pipes[used["0", "2"]] == "pipe 20000000 12500000.0 0.0 - 50 0.0 0"
    assert used["0", "4"] != used["1", "4"]


def test_every_node_finds_every_other_by_its_name():
    said = hosts(ends_of(spec_of()))
    assert "198.18.51.1 cloud\n" in said and "198.18.51.14 south-1\n" in said and "127.0.0.1 localhost\n" in said


def test_a_namespace_has_a_loopback_of_its_own_and_no_way_out():
    inner, outer = ends_of(spec_of())[0], ends_of(spec_of())[-1]
    assert set_up(inner, 9000, ipv6=True).splitlines()[0] == "link set lo up"
    assert "addr add 198.18.51.1/24 dev lw0" in set_up(inner, 9000, ipv6=True)
    assert "link set lo up" not in set_up(outer, 9000, ipv6=False)
    assert "addrgenmode none" in set_up(inner, 9000, ipv6=True)
    assert "addrgenmode" not in set_up(inner, 9000, ipv6=False)
    assert "default" not in set_up(inner, 9000, ipv6=True) + set_up(outer, 9000, ipv6=False)


def test_a_command_inside_a_node_keeps_its_words():
    inner, outer = ends_of(spec_of())[0], ends_of(spec_of())[-1]
    command = inside(inner, Path("/run-folder/hosts"), ["echo", "a b", "$HOME"])
    assert command[:2] == ["nsenter", f"--net=/run/netns/{inner.namespace}"]
    assert command[-5:] == ["/run-folder/hosts", "cloud", "echo", "a b", "$HOME"]
    assert inside(outer, Path("/x"), ["echo"]) == ["echo"]


# --- the record


def test_the_record_tells_where_each_node_of_the_file_is(tmp_path: Path):
    for emulated in (True, False):
        spec = spec_of(tmp_path, emulated=emulated, slots=3)
        write_record(record_of(spec))
        values = json.loads((tmp_path / "cluster.json").read_text())
        assert values["nimbus"] == f"{layout_of(spec).host}:6627"
        assert values["network"]["emulated"] is emulated
        north = values["network"]["nodes"][2]
        assert (north["id"], north["site"], north["role"]) == ("north-1", "north", "worker")
        where = ("north-1", "198.18.51.12", f"{prefix_of(tmp_path)}-north-1")
        assert (north["name"], north["address"], north["namespace"]) == (
            where if emulated else ("127.0.0.12", "127.0.0.12", None)
        )
        assert read_record(tmp_path).spec == spec


def test_a_cluster_whose_relay_is_gone_has_crashed(tmp_path: Path):
    import os

    (tmp_path / ".leeward-cluster").touch()
    me = process_of(os.getpid())
    assert me is not None
    write_record(record_of(spec_of(tmp_path), nimbus=me, relay=me))
    with pytest.raises(FolderError, match="a cluster runs in"):
        claim_folder(tmp_path)
    write_record(record_of(spec_of(tmp_path), nimbus=me))
    claim_folder(tmp_path)
    write_record(record_of(spec_of(tmp_path, emulated=False), nimbus=me))
    with pytest.raises(FolderError, match="a cluster runs in"):
        claim_folder(tmp_path)


def record_of(spec: ClusterSpec, **daemons: object) -> Record:
    return Record(
        spec=spec,
        layout=layout_of(spec),
        redis_url="",
        secrets=spec.dir / "secrets.json",
        storm_home=Path("/storm"),
        storm_version="2",
        daemons=daemons,
    )


# --- what was counted and measured


def test_statistics_are_read_by_the_names_of_the_nodes():
    ends = ends_of(spec_of())
    text = json.dumps({
        "number": 2, "packets": 1000, "strange": 3, "failed": 0, "wakes": 7, "processor_s": 0.01, "realtime": True,
        "began_ns": 5, "routes": 2, "refused": 1,
        "pairs": [{"from": 0, "to": 2, "packets": 5, "bytes": 700, "dropped": 1, "lost": 2}],
        "pipes": [{"pipe": 3, "packets": 5, "bytes": 700, "dropped": 0, "lost": 2}],
    })  # fmt: skip
    found = parse_statistics(text, ends)
    assert found.pairs == {("cloud", "north-1"): PairStatistics(packets=5, bytes=700, dropped=1, lost=2)}
    assert found.pipes == {3: PipeStatistics(packets=5, bytes=700, dropped=0, lost=2)}
    assert (found.routes, found.refused) == (2, 1)
    assert found.microseconds == pytest.approx(10.0)


def test_the_rate_of_a_train_is_that_of_its_packets_after_the_first_ones():
    evenly = [(n * 1_000_000, 1250) for n in range(100)]
    assert rate_of(evenly) == pytest.approx(10.0)
    catching_up = [(n * 1000, 1250) for n in range(5)] + [(10_000_000 + n * 1_000_000, 1250) for n in range(50)]
    assert rate_of(catching_up) == pytest.approx(10.0)
    assert rate_of([]) is None and rate_of(evenly[:5]) is None


# --- commands


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(_build(), list(words), env={"COLUMNS": "200"})
    if isinstance(done.exception, ConfigError):
        return 2, str(done.exception)
    return done.exit_code, done.output


def test_check_prints_round_trips_and_rates():
    code, text = said("network", "check", str(EXAMPLE))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:6]}
    assert code == 0
    assert rows["north-1"] == ["40", "100M", "40", "100M", "-", "1", "160", "20M"]
    code, text = said("network", "check", str(EXAMPLE), "--output", "json")
    pairs = {(pair["from"], pair["to"]): pair for pair in json.loads(text)["pairs"]}
    assert code == 0 and len(pairs) == 20
    assert pairs["cloud", "south-1"]["round_trip_ms"] == 120 and pairs["cloud", "south-1"]["rate_mbps"] == 20


def test_check_names_the_file_and_what_is_wrong(tmp_path: Path):
    file = tmp_path / "bad.toml"
    assert said("network", "check", str(file))[1].startswith(f"{file}: cannot be read (No such file")
    file.write_text("[[site]\n")
    assert said("network", "check", str(file))[1].startswith(f"{file}: is no TOML")
    file.write_text("[inside]\nloss = 2\n")
    code, text = said("network", "check", str(file))
    assert code == 2 and text.startswith(f"{file}: network: inside: loss: 2 is not allowed. Give a number from 0 to 1")


def test_a_file_and_a_number_of_supervisors_contradict_each_other(tmp_path: Path):
    code, text = said("cluster", "up", "--dir", str(tmp_path), "--network", str(EXAMPLE), "--supervisors", "3")
    assert code == 2 and "--supervisors or --network, not both" in text


def test_measure_says_that_there_is_no_emulated_network(tmp_path: Path):
    write_record(record_of(spec_of(tmp_path, emulated=False)))
    code, text = said("network", "measure", "--cluster", str(tmp_path))
    assert code == 1 and "has no emulated network: its nodes are on loopback addresses." in text
    write_record(record_of(spec_of(tmp_path)))
    code, text = said("network", "measure", "--cluster", str(tmp_path))
    assert code == 1 and "has ended. Start the cluster anew" in text


# --- where it cannot be


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return monkeypatch


def test_without_root_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from leeward.cli.cluster import network_of

    monkeypatch.setattr("os.geteuid", lambda: 1000)
    network, emulated = network_of(EXAMPLE, None)
    assert network == example() and not emulated
    sentence = "The network is not emulated (it needs root): all nodes are on loopback addresses, without delay.\n"
    assert capsys.readouterr().err == sentence
    with pytest.raises(NotInstalledError, match="it cannot be emulated here: it needs root"):
        namespaces.check_possible()


def test_without_the_device_or_a_program_the_reason_is_named(root: pytest.MonkeyPatch, tmp_path: Path):
    root.setattr(namespaces, "TUN", tmp_path / "tun")
    if namespaces.shutil.which("ip", path=namespaces.SEARCH):
        assert namespaces.hindrance() == f"{tmp_path / 'tun'} cannot be opened (No such file or directory)"
    root.setattr(namespaces, "SEARCH", str(tmp_path))
    assert namespaces.hindrance() == "it needs the program ip (package iproute2)"
