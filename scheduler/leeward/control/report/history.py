"""The list of reconfigurations that are over, as it is stored: bounded, each entry once. Pure but for `Ended`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leeward.control.ports import EventSink, HistoryStore
from leeward.control.report.fold import reconfiguration_of
from leeward.control.report.reading import number
from leeward.control.report.values import Reconfiguration

#: Entries of a list, and bytes of one: a znode holds 1 MB.
ENTRIES, LARGEST = 64, 8192


def appended(text: bytes, entry: Mapping[str, object]) -> bytes:
    """The stored list with one more entry; as it was if the entry is its last one."""
    kept, added = entries(text), _bounded(entry)
    if kept and kept[-1] == json.loads(json.dumps(added)):
        return text
    return json.dumps([*kept, added][-ENTRIES:], separators=(",", ":")).encode()


def entries(text: bytes) -> list[Mapping[str, Any]]:
    """The entries of a stored list; none of a text that is no list."""
    try:
        found = json.loads(text) if text else []
    except ValueError:
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def read_entries(stored: list[Mapping[str, Any]]) -> tuple[Reconfiguration, ...]:
    """As values, oldest first."""
    return tuple(reconfiguration_of(entry, number(entry.get("t"))) for entry in stored)


def _bounded(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Without its changes if it is too large, which only hundreds of nodes make it."""
    if len(json.dumps(entry)) <= LARGEST:
        return entry
    short = {name: value for name, value in entry.items() if name not in ("changes", "reason", "result")}
    return {**short, "reason": str(entry.get("reason", ""))[:500], "result": str(entry.get("result", ""))[:500]}


class Ended:
    """EventSink: passes events on, and keeps the reconfigurations that are over until they are stored."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._waiting: list[Mapping[str, object]] = []

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        """As an EventSink."""
        self._sink.emit(action, fields)
        if action == "reconfiguration_ended":
            self._waiting.append({name: value for name, value in fields.items() if name != "topology"})

    def keep(self, store: HistoryStore, now: float) -> None:
        """Store them. Raises ClusterRefusedError; the next call then stores the rest."""
        while self._waiting:
            self._waiting[0] = {"t": round(now, 3), **self._waiting[0]}
            store.add(self._waiting[0])
            del self._waiting[0]
