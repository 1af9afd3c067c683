"""The line of the live view about a running migration."""

from __future__ import annotations

import json

from leeward.core.control import ControlRecord, Phase
from leeward.core.migration.restoring import REMEDY
from leeward.dashboard.watch import EventFile, in_progress

RESTORE = ControlRecord(tables={}, epoch=7, phase=Phase.RESTORE, cut=3)


def events(tmp_path, *lines: dict) -> EventFile:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = EventFile(file)
    read.read()
    return read


RESET = {"action": "reset", "t": 100.0, "why": "silent: 4 (join)"}
BEGUN = {"action": "phase", "t": 100.1, "phase": "restore"}
HELD = {"action": "held", "t": 102.0, "why": "cut 3: nobody exported group 5", "cuts": [3], "remedy": REMEDY}


def test_a_held_topology_says_what_is_missing_and_which_commands_go_on(tmp_path):
    line = in_progress(RESTORE, events(tmp_path, RESET, BEGUN, HELD), 110.0)
    assert line.startswith("HELD") and HELD["why"] in line and "leeward recover --from-cut | --from-start" in line


def test_it_says_so_no_more_once_the_service_tries_again(tmp_path):
    line = in_progress(RESTORE, events(tmp_path, RESET, BEGUN, HELD, BEGUN), 110.0)
    assert line == "RESTORE (epoch 7, cut 3, 10.0 s): silent: 4 (join)"


def test_nothing_is_in_progress_in_run(tmp_path):
    assert in_progress(ControlRecord(tables={}), events(tmp_path, HELD), 110.0) == ""
