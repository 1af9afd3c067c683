"""The list of events at the head of `adapters/events.py` is the list of those that the code emits."""

from __future__ import annotations

import re
from pathlib import Path

from leeward.adapters import events

PACKAGE = Path(events.__file__).parents[1]
#: How code names an event: a note of the coordinator, an emission of the service, and a failed deed.
NAMED = re.compile(r'(?:\baction ?= ?|_?emit\(\s*|_note\(\s*)"([a-z_]+)"(?: if .* else "([a-z_]+)")?')
FAILED = re.compile(r'Failed(?:, epoch=[a-z]+)?\),\s*"([a-z]+)"')


def emitted() -> set[str]:
    found: set[str] = set()
    for room in ("control", "core", "adapters"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            text = path.read_text()
            found |= {name for names in NAMED.findall(text) for name in names if name}
            found |= {f"{what}_failed" for what in FAILED.findall(text)}
    return found


def listed() -> set[str]:
    lines = (events.__doc__ or "").split("action  ")[1].splitlines()[1:]
    return {name for line in lines for name in re.split(r" {2,}", line)[0].split(", ") if name}


def test_every_event_is_in_the_list_and_every_one_of_the_list_exists():
    assert emitted() - listed() == set(), "say in adapters/events.py when it is emitted"
    assert listed() - emitted() == set(), "nothing emits it any more"


def test_every_level_is_an_event():
    assert events._LEVELS.keys() <= listed()
