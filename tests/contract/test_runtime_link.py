"""Which control records a task hears of, on a real ZooKeeper: what markers bring wakes nobody but sources."""

from __future__ import annotations

import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from kazoo.exceptions import NotEmptyError

from leeward.adapters.zookeeper import ZooControlStore, connect
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Paths, Report
from leeward.runtime.task.link import Link

TABLES = {"work": (2, 2)}
LEISURE_S = 0.02


class Task:
    """A link, and the records that it posted."""

    def __init__(self, zookeeper, paths, number, *, source=False):
        self.records, self.works, self.source, self.leisure_s = [], False, source, LEISURE_S
        self.link = Link(
            zookeeper=zookeeper,
            paths=paths,
            store=SimpleNamespace(publish_metrics=lambda text: None),
            task=number,
            post=lambda work: work(),
            on_record=self._on_record,
            default=ControlRecord(tables=TABLES),
            metrics=lambda: "",
            hurry=lambda: self.source or not self.works,
            leisure=lambda: self.leisure_s,
        )
        self.link.start()

    def _on_record(self, record, first):
        newer = not self.records or record.epoch > max(self.records)[0]
        self.works = self.works or newer  # an older one gets nobody going again
        self.records.append((record.epoch, record.checkpoint))

    def hears(self, epoch, checkpoint=0):
        end = time.monotonic() + 10
        while (epoch, checkpoint) not in self.records:
            assert time.monotonic() < end, f"({epoch}, {checkpoint}) is not among {self.records}"
            time.sleep(0.005)


@pytest.fixture
def store(zoo, request):
    paths = Paths(f"/test-{request.node.name}", "app-1-1")
    client = connect(zoo.hosts, timeout_s=60)
    store = ZooControlStore(client, paths, "app")
    store.claim()
    store.write_record(ControlRecord(epoch=1, tables=TABLES))
    yield SimpleNamespace(
        paths=paths, control=store, client=client, again=lambda: ZooControlStore(client, paths, "app")
    )
    client.stop()
    client.close()


@pytest.fixture
def task(zoo, store, request):
    tasks = []

    def start(**options):
        tasks.append(Task(zoo.hosts, store.paths, len(tasks) + 1, **options))
        tasks[-1].hears(1)
        return tasks[-1]

    yield start
    for one in tasks:
        one.link._client.stop()
        one.link._client.close()


def record(epoch, checkpoint=0):
    return ControlRecord(epoch=epoch, checkpoint=checkpoint, tables=TABLES)


def test_what_markers_bring_wakes_sources_only(store, task):
    source, bolt = task(source=True), task()
    store.control.write_record(record(1, checkpoint=1), told=False)
    source.hears(1, checkpoint=1)
    store.control.write_record(record(2), told=False)
    source.hears(2)
    time.sleep(5 * LEISURE_S)
    store.control.write_record(record(3))
    source.hears(3)
    bolt.hears(3)
    assert (2, 0) not in bolt.records and (1, 1) not in bolt.records


def test_who_asks_for_a_reset_hears_of_every_record(store, task):
    """The record in force may be newer than the one that it was told: it has to ask in that epoch."""
    bolt = task()
    store.control.write_record(record(2), told=False)
    time.sleep(5 * LEISURE_S)  # until it watches only what it is told
    assert (2, 0) not in bolt.records
    bolt.works = False
    bolt.link.recover(1, "a tuple was lost", False)
    bolt.hears(2)
    bolt.works = False
    store.control.write_record(record(3), told=False)
    bolt.hears(3)


def test_who_stops_reads_at_once_what_was_put_off_and_what_comes_next(store, task):
    bolt = task()
    bolt.leisure_s = 60.0
    store.control.write_record(record(2))
    time.sleep(5 * LEISURE_S)
    assert (2, 0) not in bolt.records
    bolt.works = False
    bolt.link.look()
    bolt.hears(2)
    bolt.works = False
    store.control.write_record(record(3))
    bolt.hears(3)


def test_a_coordinator_that_another_one_has_replaced_tells_nobody(store, task):
    bolt, new = task(), store.again()
    new.claim()
    with pytest.raises(LostLeadershipError):
        store.control.write_record(record(9))
    new.write_record(record(3))
    bolt.hears(3)
    assert (9, 0) not in bolt.records


@pytest.mark.parametrize("source", [True, False])
def test_a_record_that_was_deleted_is_not_taken_for_the_first_one(store, task, source):
    """The task runs under the record that it read last, and reads the next one though its znode is a new one."""
    one = task(source=source)
    store.control.write_record(record(7))
    one.hears(7)
    delete_all(store.client, store.paths.base)
    time.sleep(5 * LEISURE_S)
    assert one.records[-1][0] == 7, "no default record"
    store.control.write_record(record(8))
    one.hears(8)
    store.control.write_record(record(9))
    one.hears(9)


def delete_all(client, path):
    """A znode with its children, of which the task may write one again meanwhile."""
    with suppress(NotEmptyError):
        client.delete(path, recursive=True)


def test_a_task_whose_joined_znode_was_deleted_still_counts_as_started(store, task):
    """Else its next process would be taken for its first, and run without the state of this one."""
    one = task()
    delete_all(store.client, store.paths.base)
    end = time.monotonic() + 10
    while not store.client.exists(f"{store.paths.joined}/1"):
        assert time.monotonic() < end, "joined again"
        time.sleep(0.02)
    store.control.write_record(record(2))
    one.hears(2)


def test_a_report_is_written_though_all_barriers_were_deleted(store, task):
    one = task()
    delete_all(store.client, store.paths.barriers)
    one.link.report("ahead-3", Report(task=1, component="work"))
    end = time.monotonic() + 10
    while not store.client.exists(f"{store.paths.barrier('ahead-3')}/1"):
        assert time.monotonic() < end, "reported"
        time.sleep(0.02)
