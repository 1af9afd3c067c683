"""Znodes that somebody deletes under a coordinator: it writes them again where no other one can have claimed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from leeward.adapters.zookeeper import ZooControlStore, ZooRequests, connect
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Paths
from leeward.core.errors import ClusterRefusedError
from leeward.core.journal import Journal, StepName
from leeward.core.outcome import DONE
from leeward.core.plan import Placement
from tests.helpers.control_twins import FIRST, SLOTS


class Scene:
    """A coordinator that has written epoch 7, and a person with a client of ZooKeeper."""

    def __init__(self, hosts: str, name: str) -> None:
        self.paths = Paths(f"/test-{name}", "app-1-1")
        self._clients = [connect(hosts, timeout_s=60) for _ in range(2)]
        self.person: KazooClient = self._clients[1]
        self.store, self.rival = (ZooControlStore(client, self.paths, "app") for client in self._clients)
        self.requests = ZooRequests(self.person, self.paths)
        self.store.claim()
        self.write(7)

    def close(self) -> None:
        for client in self._clients:
            client.stop()
            client.close()

    def write(self, epoch: int, store: ZooControlStore | None = None, **options: object) -> None:
        record = ControlRecord(epoch=epoch, tables=FIRST)
        (store or self.store).write_record(record, journal=Journal(epoch=epoch), **options)

    def delete(self, *names: str) -> None:
        for name in names:
            self.person.delete(f"{self.paths.base}/{name}".rstrip("/"), recursive=True)

    def epochs(self) -> dict[str, int]:
        names = ("control", "told", "journal")
        return {name: json.loads(self.person.get(f"{self.paths.base}/{name}")[0])["epoch"] for name in names}


@pytest.fixture
def scene(zoo, request) -> Iterator[Scene]:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    scene = Scene(zoo.hosts, name)
    yield scene
    scene.close()


GONE = [("control",), ("journal",), ("told",), ("control", "journal"), ("control", "told"), ("barrier",), ("",)]


@pytest.mark.parametrize("names", GONE, ids=lambda names: "+".join(names) or "everything")
def test_what_was_deleted_is_written_again(scene, names, caplog):
    scene.delete(*names)
    with caplog.at_level(logging.WARNING, "leeward"):
        scene.write(8)
    assert scene.epochs() == dict.fromkeys(("control", "told", "journal"), 8)
    for name in set(names) - {"", "barrier"}:
        assert f"{scene.paths.base}/{name} was deleted" in caplog.text
    scene.store.write_journal(Journal(epoch=9))  # it knows the versions of the new znodes
    scene.store.write_record(ControlRecord(epoch=9, tables=FIRST), barrier="ahead-9")
    assert scene.person.exists(scene.paths.barrier("ahead-9"))
    assert scene.epochs() == dict.fromkeys(("control", "told", "journal"), 9)
    claim = scene.rival.claim()
    assert (claim.record.epoch, claim.journal.epoch) == (9, 9)
    with pytest.raises(LostLeadershipError, match="another coordinator has claimed"):
        scene.write(10)


@pytest.mark.parametrize("deleted", ["control", "journal"])
def test_a_write_of_one_puts_the_other_back_as_it_was(scene, deleted):
    scene.delete(deleted)
    if deleted == "control":
        scene.store.write_journal(Journal(epoch=8))
        assert scene.epochs() == {"control": 7, "told": 7, "journal": 8}
    else:
        scene.store.write_record(ControlRecord(epoch=8, tables=FIRST), told=False)
        assert scene.epochs() == {"control": 8, "told": 7, "journal": 7}


@pytest.mark.parametrize("deleted", ["control", "journal"])
def test_where_another_one_has_claimed_nothing_is_written_again(scene, deleted):
    scene.rival.claim()
    scene.delete(deleted)
    with pytest.raises(LostLeadershipError, match="another coordinator has claimed"):
        scene.write(8)
    assert not scene.person.exists(f"{scene.paths.base}/{deleted}")
    scene.write(9, scene.rival)
    assert scene.epochs() == dict.fromkeys(("control", "told", "journal"), 9)


def test_where_another_one_claims_what_was_deleted_it_is_lost(scene):
    scene.delete("")
    assert scene.rival.claim().record is None
    with pytest.raises(LostLeadershipError):
        scene.write(8)
    scene.write(9, scene.rival)
    assert scene.epochs() == dict.fromkeys(("control", "told", "journal"), 9)


def test_a_coordinator_of_before_does_not_take_the_new_znode_for_its_own(scene):
    """A new znode counts its versions from 0, and meets the one that a replaced coordinator still knows."""
    known = scene.store._versions[scene.paths.control]
    scene.rival.claim()
    scene.write(8, scene.rival)
    scene.delete("control")
    for epoch in range(9, 9 + known):
        scene.write(epoch, scene.rival)
    assert scene.person.get(scene.paths.control)[1].version == known
    with pytest.raises(LostLeadershipError):
        scene.store.write_record(ControlRecord(epoch=99, tables=FIRST))
    assert scene.epochs()["control"] == 8 + known


def test_whoever_asked_is_answered_though_the_answers_were_deleted(scene):
    name = scene.requests.ask({"replicas": {}})
    scene.delete("answers")
    journal = Journal(epoch=8, step=StepName.HANDOVER, request=name)
    scene.store.write_journal(journal.at(StepName.CLOSED, 2.0, result=DONE))
    assert scene.requests.answer_to(name) == DONE and scene.requests.pending(lambda: None) is None


def test_a_request_that_was_deleted_is_answered_to_nobody(scene):
    name = scene.requests.ask({"replicas": {}})
    scene.delete("requests")
    journal = Journal(epoch=8, step=StepName.HANDOVER, request=name)
    scene.store.write_journal(journal.at(StepName.CLOSED, 2.0, result=DONE))
    assert scene.epochs()["journal"] == 8


@pytest.mark.parametrize("names", [("journal",), ("control",), ("",)])
def test_a_placement_is_written_whatever_was_deleted(scene, names):
    for epoch in (8, 9):
        scene.delete(*names)
        scene.person.delete(f"{scene.paths.root}/placement", recursive=True)
        scene.store.write_placement(Placement(topology_id="app-1-1", epoch=epoch, slots=SLOTS))
        assert scene.rival.read_placement().epoch == epoch
    scene.write(9)
    assert scene.epochs() == dict.fromkeys(("control", "told", "journal"), 9)


def test_a_record_that_was_deleted_while_nobody_led_is_not_begun_anew(scene):
    """Tasks run under epoch 7: a first record would be none to them, and name cuts and tables that are not theirs."""
    scene.delete("control")
    with pytest.raises(ClusterRefusedError, match=r"control record .*/control is gone.*epoch 7.*[Ss]ubmit"):
        scene.rival.claim()
    scene.write(8)  # the coordinator that wrote it last still can
    assert scene.rival.claim().record.epoch == 8
