"""A handover of key groups as one bolt has it: tuples wait for their groups, and state goes to its receiver."""

from __future__ import annotations

import json
from dataclasses import replace

from leeward.core.control import ControlRecord
from leeward.core.keys import key_group
from leeward.core.table import even_table, tables_text
from leeward.runtime.state import keyed as keyed_state
from tests.helpers.task_worker import TABLES, asked, begin_handover, count_of_two, emitted


def test_a_lost_group_leaves_the_state_at_once_and_its_receiver_is_named(keyed_bolt):
    table = even_table([5, 6])
    mine = next(key for key in "abcdefgh" if table[key_group(key)] == 5)
    keyed_bolt.tuple("pass", 3, [mine])
    said = begin_handover(keyed_bolt, even_table([6]))
    assert [entry[:2] for entry in emitted(said, "marker")] == [["route", 1]]
    assert emitted(said, "marker")[0][2] == tables_text({"sink": TABLES["sink"]})
    sending = asked(keyed_bolt, "send")[0]
    assert sending.epoch == 1 and sending.parcels[6][key_group(mine)] == ({mine: 1}, [])
    assert keyed_bolt.component.state.groups == ()
    assert not [entry for entry in keyed_bolt.link.done if entry[0] == "report"]
    keyed_bolt.link.post(sending.sent)
    keyed_bolt.beat()
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_a_tuple_waits_for_its_group_and_no_other_does(keyed_bolt):
    table = even_table([5, 6])
    theirs, mine = (next(key for key in "abcdefgh" if table[key_group(key)] == task) for task in (6, 5))
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    assert groups == set(range(1, 128, 2))
    for key in (theirs, mine, theirs):
        keyed_bolt.tuple("pass", 3, [key])
    keyed_bolt.marker("pass", 3, "pulse", 1, body={})
    keyed_bolt.marker("pass", 4, "pulse", 1, body={})
    assert emitted(keyed_bolt.beat()) == [[mine, 1]]
    keyed_bolt.link.post(lambda: arrived({key_group(theirs): {theirs: 7}}, 10))
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [[theirs, 8], [theirs, 9]]
    keyed_bolt.link.post(lambda: arrived({g: {} for g in groups - {key_group(theirs)}}, 10))
    said = keyed_bolt.beat() + keyed_bolt.beat()
    assert ["pulse", 1] in emitted(said)
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_where_the_worker_tells_no_groups_tuples_wait_until_all_are_in(tmp_path):
    """As with Storm's own serializer."""
    bolt = count_of_two(tmp_path, None)
    mine = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    begin_handover(bolt, even_table([5]))
    _, groups, arrived, _ = asked(bolt, "receive")
    bolt.tuple("pass", 3, [mine])
    assert emitted(bolt.beat()) == []
    bolt.link.post(lambda: arrived({group: {} for group in groups}, 10))
    assert emitted(bolt.beat() + bolt.beat()) == [[mine, 1]]
    assert json.loads(bolt.link.metrics())["groups"] == {}
    bolt.close()


def test_the_state_of_the_tuples_own_key_is_found_without_hashing_it_again(keyed_bolt, monkeypatch):
    keyed_bolt.tuple("pass", 3, [key := next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)])
    assert emitted(keyed_bolt.beat()) == [[key, 1]]

    def refuse(key):
        raise AssertionError(f"{key} was hashed")

    monkeypatch.setattr(keyed_state, "key_group", refuse)
    keyed_bolt.tuple("pass", 4, [key])
    assert emitted(keyed_bolt.beat()) == [[key, 2]]


def test_a_tuple_has_waited_when_its_group_is_in_and_not_until_all_that_waited_is_worked_off(keyed_bolt, monkeypatch):
    reports, took_s, count = [], [], keyed_bolt.component.process
    keyed_bolt.beat()
    around = replace(keyed_bolt.component._task.around, clock=lambda: 100.0 + sum(took_s))
    monkeypatch.setattr(keyed_bolt.component._handovers, "_around", around)
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: took_s.append(50.0) or count(tup))
    theirs = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 6)
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    monkeypatch.setattr(keyed_bolt.link, "report", lambda barrier, told, after_s: reports.append(told))
    for _ in range(3):
        keyed_bolt.tuple("pass", 3, [theirs])
    keyed_bolt.beat()
    took_s.append(2.0)
    keyed_bolt.link.post(lambda: arrived({group: {} for group in groups}, 10))
    assert len(emitted(keyed_bolt.beat() + keyed_bolt.beat())) == 3
    assert reports[-1].waited == 2.0


def test_tuples_that_waited_for_the_last_marker_come_before_the_report_of_it(keyed_bolt, monkeypatch):
    deeds, count = [], keyed_bolt.component.process
    keyed_bolt.beat()
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: deeds.append("tuple") or count(tup))
    monkeypatch.setattr(keyed_bolt.link, "report", lambda barrier, told, after_s: deeds.append(barrier))
    mine = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    tables = TABLES | {"pass": even_table([3, 4]), "count": even_table([5, 6])}
    for number in (1, 2):
        body = ControlRecord(epoch=number, handover=number, tables=tables).to_json()
        keyed_bolt.marker("pass", 3, "route", number, body=body)
        keyed_bolt.tuple("pass", 3, [mine])
        keyed_bolt.marker("pass", 4, "route", number, body=body)
        keyed_bolt.beat()
    assert deeds == ["handover-1", "tuple", "tuple", "handover-2"]  # task 4 had no work before the first one


def test_a_tick_waits_for_all_groups_and_several_become_one(keyed_bolt):
    table = even_table([5, 6])
    theirs = next(key for key in "abcdefgh" if table[key_group(key)] == 6)
    keyed_bolt.tuple("__system", -1, [1], stream="__tick")
    assert emitted(keyed_bolt.beat()) == [["tick", 0]]
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    for _ in range(2):
        keyed_bolt.tuple("__system", -1, [1], stream="__tick")
    assert emitted(keyed_bolt.beat()) == []
    keyed_bolt.link.post(lambda: arrived({g: {theirs: 7} if g == key_group(theirs) else {} for g in groups}, 10))
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [["tick", 7]]


def copied_ahead(keyed_bolt):
    for _ in range(200):
        keyed_bolt.beat()
        if any(sending.told for sending in asked(keyed_bolt, "send")):
            break
    return asked(keyed_bolt, "send")


def test_what_is_copied_ahead_is_followed_by_what_changed(keyed_bolt):
    tables = TABLES | {"count": even_table([5, 6])}
    first, second = [key for key in "abcdefgh" if tables["count"][key_group(key)] == 5][:2]
    keyed_bolt.tuple("pass", 3, [first])
    keyed_bolt.beat()
    gone = {"count": even_table([6])}
    keyed_bolt.link.show(ControlRecord(tables=tables, ahead=1, coming=TABLES | gone))
    (sending,) = copied_ahead(keyed_bolt)
    assert sending.reached == [6] and sending.parts
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done
    sending.told()
    keyed_bolt.beat()
    assert ("report", "ahead-1", "") in keyed_bolt.link.done
    keyed_bolt.component._handovers._due = float("inf")
    keyed_bolt.tuple("pass", 3, [second])
    begin_handover(keyed_bolt, even_table([6]))
    ahead = {key for groups in sending.parcels.values() for items, _ in groups.values() for key in items}
    assert ahead == {second} and len(sending.parcels[6]) == 64
    assert len([entry for entry in keyed_bolt.component._handovers._courier.asked if entry[0] == "send"]) == 1


def test_a_copy_that_was_given_up_is_not_reported(keyed_bolt):
    tables = TABLES | {"count": even_table([5, 6])}
    keyed_bolt.beat()
    keyed_bolt.link.show(ControlRecord(tables=tables, ahead=1, coming=TABLES | {"count": even_table([6])}))
    (sending,) = copied_ahead(keyed_bolt)
    keyed_bolt.link.show(ControlRecord(tables=tables))
    keyed_bolt.beat()
    sending.told()
    keyed_bolt.beat()
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done


def test_groups_that_are_whole_before_the_marker_wait_for_it(keyed_bolt):
    coming = TABLES | {"count": even_table([5])}
    before = TABLES | {"count": even_table([5, 6])}
    theirs = next(key for key in "abcdefgh" if before["count"][key_group(key)] == 6)
    keyed_bolt.beat()
    keyed_bolt.link.show(ControlRecord(tables=before, ahead=1, coming=coming))
    keyed_bolt.beat()
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done, "the donor knows whether it is taken"
    keyed_bolt.link.post(lambda: arrived({g: {theirs: 4} if g == key_group(theirs) else {} for g in groups}, 9))
    keyed_bolt.beat()
    assert len(keyed_bolt.component.state.groups) == 64
    begin_handover(keyed_bolt, even_table([5]))
    keyed_bolt.tuple("pass", 3, [theirs])
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [[theirs, 5]]
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_a_donor_looks_at_once_at_what_it_is_told(keyed_bolt, monkeypatch):
    keyed_bolt.beat()
    monkeypatch.setattr(type(keyed_bolt.component._task), "turn_s", 0.04)
    assert keyed_bolt.link.leisure() == 0.0
    begin_handover(keyed_bolt, even_table([6]))
    assert not keyed_bolt.component.state.groups and keyed_bolt.link.leisure() >= 0.25, "it is called"
    keyed_bolt.component._direct = False
    assert keyed_bolt.link.leisure() == 0.02, "nobody can call it"


def test_a_task_that_takes_part_through_markers_alone_looks_when_it_is_over(keyed_bolt, monkeypatch):
    keyed_bolt.beat()
    monkeypatch.setattr(keyed_bolt.component, "kind", "stateless")
    assert keyed_bolt.component._until_told() >= 0.25


def test_a_donor_of_tuples_that_has_no_state_has_copied_it_all(bolt, monkeypatch):
    """Else a handover in which a stateless bolt is scaled beside another one would never begin."""
    bolt.beat()
    monkeypatch.setattr(bolt.component._task.shell, "kind", "stateless")
    monkeypatch.setattr(bolt.component._protocol, "_stateful", False)
    bolt.link.show(ControlRecord(tables=TABLES, ahead=1, coming=TABLES | {"count": even_table([5, 6])}))
    bolt.beat()
    bolt.beat()
    assert ("report", "ahead-1", "") in bolt.link.done
