"""Real agents over real sockets: state survives k failures, is lost with one more, and no forged byte becomes state."""

from __future__ import annotations

import os
import random
import socket

import pytest

from leeward.core.errors import ClusterRefusedError, ConfigError, SnapshotError
from leeward.policies.agiledart.recovery.scheme import Fragments
from leeward.policies.agiledart.recovery.settings import FragmentSettings
from leeward.runtime.state.scattered import Scattered
from leeward.wire.fragments import GREETING, MAGIC, VERSION, AgentClient
from tests.helpers.fragment_agents import SECRET, Agents
from tests.helpers.waiting import wait_for

BLOBS = {group: random.Random(group).randbytes(40_000 + group) for group in range(16)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Agents(tmp_path_factory.mktemp("agents"), 8) as agents:
        yield agents


@pytest.fixture
def agents(shared):
    """All run, and keep nothing."""
    for number, process in enumerate(shared.processes):
        if process.poll() is not None:
            shared.start(number)
        client = shared.client(number)
        for topology in ("t-1", "t-2", "../t"):
            client.drop(topology)
        client.close()
    return shared


def scattered(addresses, **settings) -> Scattered:
    return Scattered(Fragments(FragmentSettings(**settings)), addresses, SECRET.encode(), node="n1")


def used(agents, access) -> list[int]:
    """Numbers of the agents that have the fragments 0, 1, ... of the first part that is put."""
    return [agents.addresses.index(address) for address in access.agents[:6]]


def test_groups_come_back_also_in_part(agents):
    access = scattered(agents.addresses)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    assert scattered(agents.addresses).get("t-1", 7, record, BLOBS) == BLOBS
    assert access.get("t-1", 7, record, [3, 9, 99]) == {3: BLOBS[3], 9: BLOBS[9]}
    assert sorted(agents.counts()) == [0, 0, 1, 1, 1, 1, 1, 1]


def test_k_failures_are_survived_and_one_more_is_reported(agents):
    access = scattered(agents.addresses)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    first, second, third, *_ = used(agents, access)
    agents.kill(first)
    agents.kill(second)
    assert access.get("t-1", 7, record, BLOBS) == BLOBS
    agents.kill(third)
    with pytest.raises(SnapshotError, match=r"cut 7, fragments of count\.1\.3: stripe 0 is lost: 3 of its blocks can"):
        access.get("t-1", 7, record, BLOBS)


def test_forged_bytes_on_a_disk_are_never_state(agents):
    access = scattered(agents.addresses)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    for count, number in enumerate(used(agents, access)[:3]):
        (file,) = agents.files(number)
        file.write_bytes(bytes(byte ^ 1 for byte in file.read_bytes()))
        if count < 2:
            assert access.get("t-1", 7, record, BLOBS) == BLOBS
    with pytest.raises(SnapshotError, match="fail their checksums"):
        access.get("t-1", 7, record, BLOBS)


def test_fragments_of_another_epoch_are_not_taken(agents):
    """The same cut and task, written by the processes of two epochs; then the older bytes under the newer name."""
    access = scattered(agents.addresses)
    old = access.put("t-1", 7, "count.1.3", {0: b"old" * 50_000}).record
    new = access.put("t-1", 7, "count.1.4", {0: b"new" * 50_000}).record
    assert access.get("t-1", 7, old, [0]) == {0: b"old" * 50_000}
    assert access.get("t-1", 7, new, [0]) == {0: b"new" * 50_000}
    for number in used(agents, access)[:2]:
        older, newer = agents.files(number)
        os.replace(older, newer)
    assert access.get("t-1", 7, new, [0]) == {0: b"new" * 50_000}


def test_a_truncated_fragment_counts_as_a_failure(agents):
    access = scattered(agents.addresses)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    (file,) = agents.files(used(agents, access)[0])
    os.truncate(file, 1000)
    assert access.get("t-1", 7, record, BLOBS) == BLOBS


def test_an_agent_that_stops_to_answer_is_passed_over(agents):
    access = scattered(agents.addresses, silent_s=0.1)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    slow = used(agents, access)[0]
    agents.pause(slow, on=True)
    try:
        assert access.get("t-1", 7, record, BLOBS) == BLOBS
    finally:
        agents.pause(slow, on=False)


def test_a_spare_takes_the_fragment_of_an_agent_that_is_away(agents):
    access = scattered(agents.addresses)
    away = used(agents, access)[2]
    agents.kill(away)
    record = access.put("t-1", 7, "count.1.3", BLOBS).record
    agents.start(away)
    counts = agents.counts()
    assert counts[away] == 0 and sum(counts) == 6
    assert access.get("t-1", 7, record, BLOBS) == BLOBS


def test_fewer_fragments_than_the_state_needs_are_an_error(agents):
    for number in range(5):
        agents.kill(number)
    with pytest.raises(ClusterRefusedError, match="3 of 6 fragments could be stored, and 4 are needed"):
        scattered(agents.addresses).put("t-1", 7, "count.1.3", BLOBS)


def test_more_fragments_than_neighbours_are_refused(agents):
    with pytest.raises(ConfigError, match="6 fragments need as many neighbours, and there are 5"):
        scattered(agents.addresses[:5]).put("t-1", 7, "count.1.3", BLOBS)


def test_agents_on_the_own_node_are_not_used():
    access = Scattered(Fragments(), ["n1:1", "n2:1", "n3:1", "n2:1"], b"s", node="n1")
    assert sorted(access.agents) == ["n2:1", "n3:1"]


def test_a_fragment_is_there_again_after_the_agents_process_was_killed(agents):
    client = agents.client(0)
    client.put("t-1", 3, "a.1.1.0", [b"abc", b"def"])
    agents.kill(0)
    agents.start(0)
    assert agents.counts()[0] == 1 and agents.files(0)[0].read_bytes() == b"abcdef"


def test_dropped_cuts_are_gone_and_newer_ones_stay(agents):
    client = agents.client(0)
    for cut in (3, 4, 10):
        client.put("t-1", cut, "a.1.1.0", [b"abc"])
    client.put("t-2", 3, "a.1.1.0", [b"abc"])
    assert client.drop("t-1", 10) == 2 and client.count() == 2
    names = [str(file.relative_to(agents.folder(0))) for file in agents.files(0)]
    assert names == ["t-1/10/a%2E1%2E1%2E0", "t-2/3/a%2E1%2E1%2E0"]
    assert client.drop("t-1") == 1


def test_names_do_not_lead_out_of_the_folder(agents):
    client = agents.client(0)
    client.put("../t", 3, "../../x", [b"abc"])
    assert [str(file.relative_to(agents.folder(0))) for file in agents.files(0)] == ["%2E%2E%2Ft/3/%2E%2E%2F%2E%2E%2Fx"]
    for topology, cut, part in (("t-1", -1, "a"), ("t-1", 1, ""), ("t-1", 1, "x" * 201)):
        with pytest.raises(ClusterRefusedError, match="is no n"):
            client.put(topology, cut, part, [b"abc"])
    assert client.count() == 1  # the connection is of use after each refusal


def test_bytes_that_are_not_those_announced_are_not_kept(agents):
    client = agents.client(0)
    client.way.send(["put", "t-1", 3, "a", 3, bytes(32)], [b"abc"])
    assert client.way.receive() == ["no", "the bytes are not those that were announced"]
    assert client.count() == 0 and agents.files(0) == []


def test_a_client_without_the_secret_gets_no_answer(agents):
    client = AgentClient(agents.addresses[0], b"another", 5.0)
    with pytest.raises(ConnectionError):
        client.drop("t-1")


def test_a_recorded_frame_is_refused_on_another_connection(agents):
    """It is sealed with a key that follows from both sides' nonces."""
    host, port = agents.addresses[0].rsplit(":", 1)
    client = agents.client(0)
    client.put("t-1", 3, "a", [b"abc"])
    recorded = bytearray()
    client.way.socket = _Recorder(recorded)
    client.way.send(["drop", "t-1", 10])
    with socket.create_connection((host, int(port)), timeout=5) as attacker:
        attacker.sendall(GREETING.pack(MAGIC, VERSION, bytes(16)) + recorded)
        while attacker.recv(1000):
            pass
    assert agents.counts()[0] == 1


class _Recorder:
    def __init__(self, into: bytearray) -> None:
        self._into = into

    def sendmsg(self, buffers):
        for buffer in buffers:
            self._into += buffer
        return sum(map(len, buffers))


def test_noise_does_not_end_an_agent(agents):
    host, port = agents.addresses[0].rsplit(":", 1)
    for noise in (b"", b"GET / HTTP/1.1\r\n\r\n" * 10, GREETING.pack(MAGIC, VERSION, bytes(16)) + b"\xff" * 100):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(noise)
    assert agents.counts()[0] == 0


def test_an_agent_keeps_no_more_than_it_may(tmp_path):
    with Agents(tmp_path / "one", 1, "--most-mb", "0.001") as agents:
        client = agents.client(0)
        client.put("t-1", 3, "a", [bytes(900)])
        with pytest.raises(ClusterRefusedError, match="200 bytes more are over the 1000 bytes"):
            client.put("t-1", 3, "b", [bytes(200)])
        client.drop("t-1")
        client.put("t-1", 4, "b", [bytes(1000)])
        wait_for(lambda: not any((agents.folder(0) / ".drafts").iterdir()))
