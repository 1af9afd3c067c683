"""Snapshots of tasks in a real Redis, at real agents and in the swap area: what is written comes back, and faults say
what they are. Where bytes are makes no difference, so most tests run with each store.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import redis

from leeward.adapters.redis import RedisSnapshots
from leeward.core.errors import ClusterRefusedError, ConfigError, FencedError, SnapshotError
from leeward.core.secrets import Secrets
from leeward.runtime.state import nearby, snapshot
from leeward.runtime.state.schemes import scattered_of
from leeward.runtime.state.store import TaskStore
from tests.helpers.fragment_agents import SECRET, Agents
from tests.helpers.waiting import wait_for

STATE = {"a": [1, 2.5, None, True, b"\x00\xff", "é", {"nested": [1]}], "b": 2**62}


SCHEME = "leeward.policies.agiledart.recovery.scheme:Fragments"
SECRETS = Secrets(agent_secret=SECRET)


class Stores:
    """Makes stores of tasks, with the bytes in Redis or at agents."""

    def __init__(self, server, tmp_path, agents: Agents | None, **options: float) -> None:
        self._server, self._tmp_path, self.agents = server, tmp_path, agents
        self.conf = {}
        if agents is not None:
            self.conf = {"leeward.state.store": SCHEME, "leeward.state.agents": agents.addresses}
            self.conf["leeward.state.options"] = options

    def __call__(self, task, node=None) -> TaskStore:
        node = node or f"n{task}"
        return TaskStore(
            self._server.url, "t-1", "count", task, node=node, swap=self._tmp_path / node,
            scattered=scattered_of(self.conf, node, SECRETS),
        )  # fmt: skip

    def lose(self, client, cut) -> None:
        """The bytes of all groups."""
        if self.agents is None:
            client.delete(f"leeward:t-1:cut:{cut}:count")
        for number in range(6 if self.agents else 0):
            agent = self.agents.client(number)
            agent.drop("t-1")
            agent.close()


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    """Agents, if a test wants any."""
    with ExitStack() as stack:
        made: list[Agents] = []

        def of_the_module() -> Agents:
            if not made:
                made.append(stack.enter_context(Agents(tmp_path_factory.mktemp("agents"), 6)))
            return made[0]

        yield of_the_module


@pytest.fixture(params=["redis", "agents"])
def store(request, server, tmp_path, six):
    """Each of the two; agents keep nothing of a test before."""
    made = Stores(server, tmp_path, six() if request.param == "agents" else None)
    made.lose(server.client, 0)
    return made


@pytest.fixture
def at_agents(server, tmp_path, six):
    """The one at agents."""
    made = Stores(server, tmp_path, six())
    made.lose(server.client, 0)
    return made


@pytest.fixture
def in_redis(server, tmp_path):
    """The one in Redis alone."""
    return Stores(server, tmp_path, None)


def blobs(cut, groups):
    return {group: snapshot.encode(entries, cut=cut, owner="count") for group, entries in groups.items()}


def test_a_writer_learns_how_long_the_next_checkpoint_may_wait(server, tmp_path, six, in_redis, at_agents):
    promised = Stores(server, tmp_path, six(), recover_s=60.0)
    some = blobs(3, {0: STATE})
    assert [made(1).export(3, 1, some, (0,), {}) for made in (in_redis, at_agents)] == [0.0, 0.0]
    assert 60.0 < promised(1).export(3, 1, some, (0,), {}) < 120.0, "an operator is taken to be busy half of the time"
    assert promised(1).export(4, 1, {}, (0,), {}) == 0.0, "nothing is stored"


def test_groups_of_several_old_owners_come_together_at_the_new_one(store, server, client):
    store(1).export(3, 1, blobs(3, {0: STATE}), (0, 1), {})
    store(2).export(3, 1, blobs(3, {2: {7: "seven"}}), (2, 3), {})
    entries, size = store(9).load(3, (0, 1, 2, 3))
    assert entries == {0: STATE, 1: {}, 2: {7: "seven"}, 3: {}} and size > 0
    assert [type(value) for value in entries[0]["a"]] == [type(value) for value in STATE["a"]]


def test_what_stays_on_the_node_never_leaves_it(store, server, client):
    mine = store(1)
    mine.export(4, 1, blobs(4, {0: {"x": 1}}), (0, 5), blobs(4, {5: {"y": 2}}))
    assert client.hkeys("leeward:t-1:cut:4:count") == ([] if store.agents else [b"0"])
    assert store(1).load(4, (0, 5))[0] == {0: {"x": 1}, 5: {"y": 2}}
    with pytest.raises(SnapshotError, match="group 5 is in the swap area of task 1 on n1"):
        store(2).load(4, (5,))
    moved = store(1, node="elsewhere")
    with pytest.raises(SnapshotError, match="is not on this node"):
        moved.load(4, (5,))


def test_the_swap_file_before_the_newest_stays_whatever_numbers_lie_between(store, server, client):
    mine = store(1)
    for cut in (4, 9, 17):
        mine.export(cut, 1, {}, (5,), blobs(cut, {5: {"cut": cut}}))
    assert mine.load(9, (5,))[0] == {5: {"cut": 9}} and mine.load(17, (5,))[0] == {5: {"cut": 17}}
    with pytest.raises(SnapshotError, match="is not on this node"):
        mine.load(4, (5,))


def test_much_state_counts_with_the_record_of_its_task(store, server, client):
    groups = {group: {f"k{n}": "x" * 1000 for n in range(500)} for group in range(8)}
    mine = store(1)
    mine.export(3, 1, blobs(3, groups), range(8), {})
    assert store(9).load(3, range(8))[0] == groups
    assert store(9).load(3, (2, 5))[0] == {group: groups[group] for group in (2, 5)}
    client.set("leeward:t-1:fence", 5)
    with pytest.raises(FencedError):
        mine.export(4, 1, blobs(4, groups), range(8), {})
    assert not client.exists("leeward:t-1:cut:4:count:tasks")


def test_much_state_is_written_to_redis_in_several_calls(in_redis, client):
    groups = {group: {f"k{n}": "x" * 1000 for n in range(500)} for group in range(8)}
    mine = in_redis(1)
    calls, script = [], mine._script
    mine._script = lambda keys, args: calls.append((len(args), client.hlen(keys[2]))) or script(keys=keys, args=args)
    mine.export(3, 1, blobs(3, groups), range(8), {})
    assert len(calls) >= 3 and all(told == 0 for _, told in calls)


def test_transfers_are_counted_and_timed(in_redis, server):
    store, other = in_redis(1), in_redis(2)
    assert store.transfers.figures() == dict.fromkeys(("up_bytes", "up_s", "down_bytes", "down_s", "trip_s"), 0)
    written = blobs(3, {0: STATE, 1: STATE})
    store.export(3, 1, written, [0, 1], {})
    store.publish_metrics("{}")
    other.load(3, [0, 1])
    up, down = store.transfers, other.transfers
    assert up.up_bytes == sum(map(len, written.values())) == down.down_bytes and up.down_bytes == 0
    assert 0 < up.up_s < 5 and 0 < down.down_s < 5 and 0 < up.trip_s < 5


def test_cut_zero_is_empty_state(store, server, client):
    assert store(1).load(0, (1, 2)) == ({1: {}, 2: {}}, 0)


def test_an_older_epoch_is_fenced_off(store, server, client):
    client.set("leeward:t-1:fence", 5)
    with pytest.raises(FencedError, match="task 1 of epoch 4 may not write: epoch 5"):
        store(1).export(1, 4, blobs(1, {0: {"x": 1}}), (0,), {})
    assert client.keys("leeward:t-1:cut*") == []
    if store.agents:
        assert store.agents.counts() == [0] * 6


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]), "group 0 is damaged: .*crc32"),
        (lambda blob: blob[:3] + bytes([9]) + blob[4:], "group 0 has version 9, this program reads up to 2"),
        (lambda blob: blob[:10], "group 0 is not a snapshot"),
        (lambda blob: b"", "group 0 is not a snapshot"),
    ],
)
def test_spoilt_bytes_are_refused(store, client, spoil, message):
    store(1).export(1, 0, {0: spoil(blobs(1, {0: {"x": 1}})[0])}, (0,), {})
    with pytest.raises(SnapshotError, match=message):
        store(2).load(1, (0,))


def test_bytes_of_another_cut_are_refused(store, server, client):
    store(1).export(1, 0, blobs(7, {0: {"x": 1}}), (0,), {})
    with pytest.raises(SnapshotError, match=r"cut 7 \(wanted 1\)"):
        store(2).load(1, (0,))


def test_a_lost_group_and_an_unowned_one_are_told_apart(store, server, client):
    store(1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    with pytest.raises(SnapshotError, match="nobody exported group 3"):
        store(2).load(1, (0, 3))
    store.lose(client, 1)
    with pytest.raises(SnapshotError, match=r"group 0 is missing|stripe 0 is lost"):
        store(2).load(1, (0,))


def test_redis_full_at_export_writes_nothing(store, server, client):
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.RedisError, match=r"OOM|maxmemory"):
        store(1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    client.config_set("maxmemory", 0)
    assert client.keys("leeward:t-1:cut*") == []


def test_redis_read_only_at_export_writes_nothing(store, server, client):
    client.replicaof("127.0.0.1", "1")  # as after a failover
    with pytest.raises(redis.RedisError, match="read only"):
        store(1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    client.replicaof("NO", "ONE")
    assert client.keys("leeward:t-1:cut*") == []


def test_redis_away_at_export_is_an_error_and_later_works(store, server, client):
    mine = store(1)
    mine.publish_metrics("{}")
    server.stop()
    with pytest.raises(redis.RedisError):
        mine.export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    server.start()
    mine.export(2, 0, blobs(2, {0: {"x": 1}}), (0,), {})
    assert store(2).load(2, (0,))[0] == {0: {"x": 1}}


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), 2**70, object()])
def test_values_that_cannot_travel_are_named(value):
    with pytest.raises(SnapshotError, match=r"state of count, key 'bad'.*" + type(value).__name__):
        snapshot.encode({"good": 1, "bad": value}, cut=1, owner="count")


# --- the store at agents alone


def test_a_small_record_is_all_that_redis_gets(at_agents, client):
    at_agents(1).export(3, 1, blobs(3, {0: {"x": "y" * 500_000}}), (0,), {})
    assert not client.exists("leeward:t-1:cut:3:count")
    assert client.memory_usage("leeward:t-1:cut:3:count:tasks") < 10_000
    assert client.smembers("leeward:t-1:agents") == {address.encode() for address in at_agents.agents.addresses}
    assert at_agents.agents.counts() == [1] * 6


def test_a_writer_that_is_fenced_while_it_sends_leaves_nothing_that_counts(at_agents, server, client):
    """The fence rises between the first look and the record; fragments of the old epoch have names of their own."""
    mine = at_agents(1)
    at_agents(2).export(3, 2, blobs(3, {0: {"x": "new"}}), (0,), {})
    scatter = mine._scatter
    mine._scatter = lambda *about: (scatter(*about), client.set("leeward:t-1:fence", 2))[0]
    with pytest.raises(FencedError, match="task 1 of epoch 1 may not write: epoch 2"):
        mine.export(3, 1, blobs(3, {0: {"x": "old"}}), (0,), {})
    assert at_agents(3).load(3, (0,))[0] == {0: {"x": "new"}}


def test_fragments_go_with_their_cut_and_with_their_topology(at_agents, server, client):
    for cut in (3, 4, 5):
        at_agents(1).export(cut, 1, blobs(cut, {0: {"cut": cut}}), (0,), {})
    snapshots = RedisSnapshots(server.url, secrets=SECRETS)
    assert snapshots.delete_cuts("t-1", below=5) == 2
    wait_for(lambda: at_agents.agents.counts() == [1] * 6)
    assert at_agents(2).load(5, (0,))[0] == {0: {"cut": 5}}
    snapshots.delete_topology("t-1")
    assert at_agents.agents.counts() == [0] * 6 and not client.keys("leeward:t-1:*")
    snapshots.close()


def test_cuts_are_deleted_without_waiting_for_an_agent_that_is_away(at_agents, server, client):
    at_agents(1).export(3, 1, blobs(3, {0: {"x": 1}}), (0,), {})
    at_agents(1).export(4, 1, blobs(4, {0: {"x": 1}}), (0,), {})
    at_agents.agents.kill(0)
    snapshots = RedisSnapshots(server.url, secrets=SECRETS)
    assert snapshots.delete_cuts("t-1", below=4) == 1
    wait_for(lambda: at_agents.agents.client(1).count() == 1)
    at_agents.agents.start(0)
    assert at_agents.agents.counts()[0] == 2
    snapshots.delete_cuts("t-1", below=4)
    wait_for(lambda: at_agents.agents.counts() == [1] * 6)
    snapshots.close()


def test_a_store_that_is_away_is_an_error_and_the_cut_does_not_count(at_agents, client):
    mine = at_agents(1)
    for number in range(3):
        at_agents.agents.kill(number)
    with pytest.raises(ClusterRefusedError, match="3 of 6 fragments could be stored, and 4 are needed"):
        mine.export(3, 1, blobs(3, {0: {"x": 1}}), (0,), {})
    assert client.keys("leeward:t-1:cut*") == []
    for number in range(3):
        at_agents.agents.start(number)
    mine.export(3, 1, blobs(3, {0: {"x": 1}}), (0,), {})
    assert at_agents(2).load(3, (0,))[0] == {0: {"x": 1}}


def test_fragments_need_the_store_that_wrote_them(at_agents, in_redis, client):
    at_agents(1).export(3, 1, blobs(3, {0: {"x": 1}}), (0,), {})
    with pytest.raises(SnapshotError, match="cut 3, count, group 0 is in fragments at agents"):
        in_redis(2).load(3, (0,))


AGENTS = {"leeward.state.agents": [f"n{number}:1" for number in range(6)]}


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"leeward.state.store": SCHEME}, "leeward.state.agents is None"),
        ({"leeward.state.store": SCHEME, "leeward.state.agents": ["n1"]}, "leeward.state.agents has 'n1'"),
        ({"leeward.state.store": SCHEME, "leeward.state.agents": "n1:1, n2:1"}, "6 fragments need as many neighbours"),
        ({"leeward.state.store": SCHEME, **AGENTS, "leeward.state.options": {"m": 0}}, "leeward.state.options.m' is 0"),
        ({"leeward.state.store": SCHEME, **AGENTS, "leeward.state.options": 3}, "leeward.state.options is 3"),
        ({"leeward.state.store": "no.such:Store", **AGENTS}, "'no.such:Store', which cannot be loaded"),
        ({"leeward.state.store": "rediss", **AGENTS}, "unknown value of leeward.state.store 'rediss'"),
        ({"leeward.state.store": 3}, "leeward.state.store is 3"),
        ({"leeward.state.store": SCHEME, "leeward.state.agents": "near:"}, "leeward.state.agents has 'near:'"),
        ({"leeward.state.store": SCHEME, "leeward.state.agents": ["near:n1:x"]}, "has 'near:n1:x'"),
        ({"leeward.state.store": SCHEME, "leeward.state.agents": "near:1, n1:1"}, "has 'n1:1' beside 'near:1'"),
        (
            {"leeward.state.store": SCHEME, "leeward.state.agents": "near:1", "leeward.state.options": {"m": 23}},
            "25 fragments need as many neighbours, and there are 24",
        ),
    ],
)
def test_settings_of_a_store_that_make_no_sense_are_refused(conf, message):
    with pytest.raises(ConfigError, match=message):
        scattered_of(conf, "n9", SECRETS)


@pytest.mark.parametrize(
    ("agents", "asked"),
    [("near:7, near:10.0.0.7:6800", ["127.0.0.9:7", "10.0.0.7:6800"]), (["near:[::1]:7"], ["[::1]:7"])],
)
def test_agents_near_one_are_asked_for_and_without_a_host_it_is_on_the_tasks_node(monkeypatch, agents, asked):
    monkeypatch.setattr(nearby.Nearby, "find", lambda self: self._asked)
    conf = {"leeward.state.store": SCHEME, "leeward.state.agents": agents}
    assert list(scattered_of(conf, "127.0.0.9", SECRETS).agents) == asked


def test_agents_need_a_secret():
    with pytest.raises(ConfigError, match="the secrets file has no agent_secret"):
        scattered_of({"leeward.state.store": SCHEME, **AGENTS}, "n9", Secrets())


@pytest.mark.parametrize("conf", [{}, {"leeward.state.store": "redis"}])
def test_redis_is_the_default(conf):
    assert scattered_of(conf, "n9", Secrets()) is None
