"""One suite for the ports of the control side in ZooKeeper: the in-memory twin and the real server."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from leeward.adapters.zookeeper import (
    ZooBarriers,
    ZooClusterStore,
    ZooControlStore,
    ZooHistory,
    ZooLock,
    ZooRequests,
    connect,
)
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Loss, Paths, Phase, Report
from leeward.core.errors import ClusterRefusedError
from leeward.core.journal import Journal, StepName
from leeward.core.outcome import DONE, aborted, refused
from leeward.core.plan import Placement
from leeward.core.standing import Proposal, Standing
from leeward.sim.memory import (
    MemoryBarriers,
    MemoryClusterStore,
    MemoryControlStore,
    MemoryHistory,
    MemoryLock,
    MemoryRequests,
    World,
)
from tests.helpers.control_twins import FIRST, SLOTS
from tests.helpers.servers import silent_port
from tests.helpers.waiting import wait_for


class MemoryPorts:
    """A fresh client of the same world each time."""

    def __init__(self):
        self.world = World()

    def control(self):
        return MemoryControlStore(self.world)

    def barriers(self):
        return MemoryBarriers(self.world)

    def cluster(self):
        return MemoryClusterStore(self.world)

    def requests(self):
        return MemoryRequests(self.world)

    def lock(self):
        return MemoryLock(self.world)

    def history(self):
        return MemoryHistory(self.world)

    def report(self, barrier, report):
        self.world.barriers.setdefault(barrier, {})[report.task] = report
        self.world.changed()

    def made(self, barrier):
        return barrier in self.world.barriers

    def recover(self, epoch, loss):
        self.world.recoveries[epoch] = loss
        self.world.changed()

    def publish(self, text):
        self.world.snapshot = text
        self.world.changed()


class ZooPorts:
    """The same through sessions of their own."""

    def __init__(self, name, hosts):
        self.hosts = hosts
        self.paths = Paths(f"/test-{name}", "app-1-1")
        self.clients = []
        self.mine = self.client()

    def client(self):
        client = connect(self.hosts, timeout_s=60)
        self.clients.append(client)
        return client

    def control(self):
        return ZooControlStore(self.client(), self.paths, "app")

    def barriers(self):
        return ZooBarriers(self.client(), self.paths)

    def cluster(self):
        return ZooClusterStore(self.client(), self.paths.root)

    def requests(self):
        return ZooRequests(self.client(), self.paths)

    def lock(self):
        return ZooLock(self.client(), self.paths)

    def history(self):
        return ZooHistory(self.client(), self.paths)

    def _put(self, path, text):
        self.mine.ensure_path(path.rsplit("/", 1)[0])
        if self.mine.exists(path):
            self.mine.set(path, text.encode())
        else:
            self.mine.create(path, text.encode())

    def report(self, barrier, report):
        self._put(f"{self.paths.barrier(barrier)}/{report.task}", report.to_json())

    def made(self, barrier):
        return self.mine.exists(self.paths.barrier(barrier)) is not None

    def recover(self, epoch, loss):
        self._put(self.paths.recover(epoch), loss.to_json())

    def publish(self, text):
        self._put(Paths.snapshot(self.paths.root), text)


@pytest.fixture(params=["memory", "zookeeper"])
def ports(request):
    if request.param == "memory":
        yield MemoryPorts()
        return
    ports = ZooPorts(request.node.name.replace("[", "-").replace("]", ""), request.getfixturevalue("zoo").hosts)
    yield ports
    for client in ports.clients:
        client.stop()
        client.close()


def record(**changes):
    return ControlRecord(tables=FIRST, **changes)


def test_a_claim_starts_with_nothing(ports):
    store = ports.control()
    claim = store.claim()
    assert claim.record is None and claim.journal is None
    assert store.read_placement() is None


def test_what_is_written_is_what_the_next_one_claims(ports):
    store = ports.control()
    store.claim()
    journal = Journal(step=StepName.MOVE, epoch=3, last_cut=2, new_slots=SLOTS, times={"announce": 1.0})
    store.write_journal(Journal())
    store.write_journal(journal)
    for phase in Phase:
        store.write_record(record(epoch=3, phase=phase))
    store.write_placement(Placement(topology_id="app-1-1", epoch=3, slots=SLOTS))
    store.write_placement(Placement(topology_id="app-1-1", epoch=4, slots=SLOTS))
    fresh = ports.control()
    claim = fresh.claim()
    assert claim.journal == journal
    assert claim.record == record(epoch=3, phase=Phase.RESTORE)
    assert fresh.read_placement() == Placement(topology_id="app-1-1", epoch=4, slots=SLOTS)
    fresh.write_placement(None)
    fresh.write_placement(None)
    assert ports.control().read_placement() is None


def test_decisions_of_people_outlive_the_leader(ports):
    store = ports.control()
    store.claim()
    assert store.read_standing() is None
    proposal = Proposal(
        number=1, epoch=3, made_at=5.0, reason="load", before={"work": {"n1": 1}}, after={"work": {"n2": 1}},
        tables=FIRST, slots=SLOTS,
    )  # fmt: skip
    store.write_standing(Standing(proposal=proposal, proposals=1))
    store.write_standing(Standing(frozen=True, why="a release", proposal=proposal, proposals=1))
    fresh = ports.control()
    assert fresh.read_standing() == Standing(frozen=True, why="a release", proposal=proposal, proposals=1)
    fresh.claim()
    fresh.write_standing(Standing())
    assert ports.control().read_standing() == Standing()


def test_what_was_learnt_outlives_the_leader_that_alone_writes_it(ports):
    old, reader = ports.control(), ports.control()
    old.claim()
    assert reader.read_learnt() is None
    old.write_learnt('{"version":1}')
    old.write_learnt('{"version":1,"n":"ü"}')
    new = ports.control()
    new.claim()
    assert new.read_learnt() == '{"version":1,"n":"ü"}'
    with pytest.raises(LostLeadershipError):
        old.write_learnt("{}")
    new.write_learnt("{}")
    assert reader.read_learnt() == "{}"


def test_a_record_and_its_journal_are_written_at_once(ports):
    store = ports.control()
    store.claim()
    for told in (True, False):
        store.write_record(record(epoch=3), told=told, journal=Journal(step=StepName.AHEAD, epoch=3))
        store.write_journal(Journal(step=StepName.HANDOVER, epoch=3))
        store.write_record(record(epoch=4), told=told, journal=Journal(step=StepName.AHEAD, epoch=4))
    claim = ports.control().claim()
    assert (claim.record, claim.journal) == (record(epoch=4), Journal(step=StepName.AHEAD, epoch=4))


def test_a_barrier_is_made_with_its_record_and_may_be_there_already(ports):
    store, barriers = ports.control(), ports.barriers()
    store.claim()
    for epoch in (1, 2):
        store.write_record(record(epoch=epoch), journal=Journal(epoch=epoch), barrier="ahead-3")
        assert ports.made("ahead-3")
    assert barriers.reports("ahead-3", (), lambda: None) == {}
    claim = ports.control().claim()
    assert (claim.record, claim.journal) == (record(epoch=2), Journal(epoch=2))


def test_a_closed_journal_is_the_answer_to_whoever_asked(ports):
    store, requests = ports.control(), ports.requests()
    store.claim()
    names = [requests.ask({"replicas": {"work": {"n1": replicas}}}) for replicas in (1, 2)]
    asked = Journal(step=StepName.AHEAD, epoch=3, request=names[0])
    store.write_journal(asked)
    assert requests.pending(lambda: None)["id"] == names[0] and requests.answer_to(names[0]) is None
    closed = asked.at(StepName.CLOSED, 2.0, result=DONE)
    store.write_journal(closed)
    assert requests.pending(lambda: None)["id"] == names[1] and requests.answer_to(names[0]) == DONE
    assert ports.control().claim().journal == closed


def test_a_closed_journal_needs_no_request_to_be_written(ports):
    """Somebody has taken it away, or answered it."""
    store, requests = ports.control(), ports.requests()
    store.claim()
    answered = requests.ask({"replicas": {}})
    requests.answer(answered, refused("no"))
    for epoch, name in enumerate((answered, "r-9999999999"), 1):
        store.write_journal(Journal(epoch=epoch, request=name, result=DONE))
        store.write_record(record(epoch=epoch))
    assert ports.control().claim().journal == Journal(epoch=2, request="r-9999999999", result=DONE)
    assert requests.answer_to(answered) == refused("no")


def test_only_the_last_claim_writes(ports):
    old, new = ports.control(), ports.control()
    old.claim()
    old.write_record(record(epoch=1))
    new.claim()
    for write in (
        lambda: old.write_record(record(epoch=2)),
        lambda: old.write_record(record(epoch=2), journal=Journal(epoch=9)),
        lambda: old.write_journal(Journal(epoch=9)),
        lambda: old.write_placement(Placement(topology_id="app-1-1", epoch=9, slots=SLOTS)),
        lambda: old.write_standing(Standing(frozen=True)),
    ):
        with pytest.raises(LostLeadershipError):
            write()
    new.write_record(record(epoch=2))
    new.write_placement(Placement(topology_id="app-1-1", epoch=2, slots=SLOTS))
    assert ports.control().read_placement().epoch == 2
    claim = ports.control().claim()
    assert (claim.record, claim.journal) == (record(epoch=2), None)


def test_barriers_wake_and_tell_who_is_new(ports):
    store, wakes = ports.barriers(), []
    wake = lambda: wakes.append(1)  # noqa: E731
    assert store.reports("cut-1", (), wake) == {}
    first = Report(task=2, component="work", bytes=7)
    ports.report("cut-1", first)
    wait_for(lambda: wakes, 5.0)
    assert store.reports("cut-1", (), wake) == {2: first}
    assert store.reports("cut-1", (), wake) == {2: first}
    second = Report(task=3, component="work", error="RedisError: down")
    wakes.clear()
    ports.report("cut-1", second)
    wait_for(lambda: wakes, 5.0)
    assert len(wakes) == 1 or isinstance(ports, MemoryPorts), "watches do not pile up"
    assert store.reports("cut-1", {2}, wake) == {3: second}


@pytest.mark.parametrize("likely", [(), (4,), (2, 3), (2, 4), range(1, 100)])
def test_a_barrier_tells_the_same_whoever_was_thought_to_be_there(ports, likely):
    store = ports.barriers()
    second, third = Report(task=2, component="work", bytes=7), Report(task=3, component="work")
    for report in (Report(task=1, component="source"), second, third):
        ports.report("cut-1", report)
    assert store.reports("cut-1", {1}, lambda: None, likely=likely) == {2: second, 3: third}


def test_recovery_requests_and_drop(ports):
    store, wakes = ports.barriers(), []
    wake = lambda: wakes.append(1)  # noqa: E731
    assert store.recoveries(wake) == {}
    second, third = Loss(task=2, why="a tuple was lost"), Loss(task=3, why="it has just started", fresh=True)
    ports.recover(3, second)
    wait_for(lambda: wakes, 5.0)
    ports.recover(4, third)
    for name in ("cut-1", "cut-10", "ready-3", "ready-4"):
        ports.report(name, Report(task=1, component="source"))
    assert store.recoveries(wake) == {3: second, 4: third}
    store.drop(below=10, epoch=4)
    assert store.recoveries(wake) == {4: third}
    left = [n for n in ("cut-1", "cut-10", "ready-3", "ready-4") if store.reports(n, (), wake)]
    assert left == ["cut-10", "ready-4"]
    store.drop(below=10, epoch=4)


def test_snapshot_and_draining(ports):
    store, wakes = ports.cluster(), []
    wake = lambda: wakes.append(1)  # noqa: E731
    assert store.snapshot(wake) is None
    ports.publish('{"version":1}')
    wait_for(lambda: wakes, 5.0)
    assert store.snapshot(wake) == '{"version":1}'
    wakes.clear()
    ports.publish('{"version":2}')
    wait_for(lambda: wakes, 5.0)
    store.set_draining("127.0.0.11", True)
    store.set_draining("127.0.0.11", True)
    store.set_draining("127.0.0.12", True)
    store.set_draining("127.0.0.11", False)
    store.set_draining("127.0.0.11", False)
    assert ports.cluster().draining() == {"127.0.0.12"}


def test_the_history_outlives_its_writer_and_loses_no_entry_of_two(ports):
    assert ports.history().read() == []
    writers = [ports.history(), ports.history()]
    threads = [
        threading.Thread(target=lambda w=w, k=k: [w.add({"t": float(n), "kind": k, "epoch": n}) for n in range(15)])
        for w, k in zip(writers, ("restart", "handover"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ports.history().read()
    for kind in ("restart", "handover"):
        assert [entry["epoch"] for entry in found if entry["kind"] == kind] == list(range(15))


def test_requests_are_answered(ports):
    service, person, wakes = ports.requests(), ports.requests(), []
    wake = lambda: wakes.append(1)  # noqa: E731
    assert service.pending(wake) is None
    name = person.ask({"replicas": {"work": {"n1": 2}}})
    wait_for(lambda: wakes, 5.0)
    later = person.ask({"replicas": {"work": {"n1": 3}}})  # while the first is being carried out
    assert service.pending(wake) == {"id": name, "replicas": {"work": {"n1": 2}}}
    told = threading.Event()
    assert person.answer_to(name) is None and person.answer_to(name, told.set) is None
    service.answer(name, DONE)
    assert told.wait(5.0) and person.answer_to(name) == DONE
    assert service.pending(wake) == {"id": later, "replicas": {"work": {"n1": 3}}}
    service.answer(later, aborted("too late"))
    assert (person.answer_to(later), service.pending(wake)) == (aborted("too late"), None)


def test_one_leader_and_a_standby(ports):
    first, second = ports.lock(), ports.lock()
    assert first.acquire(5.0) and first.held()
    assert not second.acquire(0.2) and not second.held()
    first.release()
    assert not first.held()
    assert second.acquire(5.0)
    second.release()


def test_a_request_that_cannot_be_read_asks_for_nothing(zoo):
    """It ended the service, and each one after it: the request stays until it is answered."""
    ports = ZooPorts("unreadable", zoo.hosts)
    requests = ports.requests()
    for number, text in enumerate(("{", "[1]", "null", "[" * 100_000)):
        name = f"r-{number}"
        ports._put(f"{ports.paths.requests}/{name}", text)
        assert requests.pending(lambda: None) == {"id": name}
        requests.answer(name, aborted("unreadable"))
        assert requests.pending(lambda: None) is None and requests.answer_to(name) == aborted("unreadable")
    for client in ports.clients:
        client.stop()


def test_a_dead_leaders_lock_comes_free(zoo):
    ports = ZooPorts("dead-leader", zoo.hosts)
    first, second = ports.lock(), ports.lock()
    assert first.acquire(5.0)
    ports.clients[1].stop()  # its session ends
    assert second.acquire(10.0)
    assert not first.held()
    for client in ports.clients:
        client.stop()


def await_stopped(pid: int) -> None:
    """Until no thread of the process runs any more."""
    tasks = Path(f"/proc/{pid}/task")
    while any((task / "stat").read_text().rpartition(") ")[2][0] != "T" for task in tasks.iterdir()):
        time.sleep(0.005)


def test_zookeeper_away_for_ten_seconds(zoo):
    """A stopped server answers nobody; everything goes on where it was, and nothing is written twice."""
    import os
    import signal

    ports = ZooPorts("away", zoo.hosts)
    store, lock = ports.control(), ports.lock()
    store.claim()
    assert lock.acquire(5.0)
    os.kill(zoo.process.pid, signal.SIGSTOP)
    timer = threading.Timer(10.0, os.kill, (zoo.process.pid, signal.SIGCONT))
    timer.start()
    await_stopped(zoo.process.pid)  # a thread that runs on another processor answers for a moment more
    start = time.monotonic()
    store.write_record(record(epoch=1))
    assert time.monotonic() - start > 5
    store.write_record(record(epoch=2))
    assert lock.held()
    assert ports.control().claim().record == record(epoch=2)
    for client in ports.clients:
        client.stop()


def test_nobody_answers_zookeeper():
    with silent_port() as port, pytest.raises(ClusterRefusedError, match=rf"127\.0\.0\.1:{port} has not answered"):
        connect(f"127.0.0.1:{port}", timeout_s=0.5)
