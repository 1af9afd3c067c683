"""Keeps what a leader learns where its successor and commands find it: at most once in `EVERY_S`, and bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leeward.control.learning.record import LARGEST, LearntRecord, read_record
from leeward.control.ports import ControlStore
from leeward.core.errors import ClusterRefusedError

#: Time from one document to the next, s. A leader that dies takes what it has learnt since.
EVERY_S = 60.0


class Keeper:
    """See the module. `emit`: where events go."""

    def __init__(self, store: ControlStore, emit: Callable[[str, Mapping[str, object]], None]) -> None:
        self._store, self._emit = store, emit
        self._next = 0.0
        self._lacks = ""  # why the last one was not kept

    def begin(self, topology_id: str, now: float) -> LearntRecord | None:
        """A term begins: the predecessor's record; None if there is none that counts."""
        text = self._store.read_learnt()
        record, why = read_record(text, topology_id)
        if record is not None:
            self._emit("learnt_resumed", {"age_s": round(max(0.0, now - record.at), 1), **_counts(record)})
        elif text is not None:
            self._emit("learnt_ignored", {"why": why})
        return record

    def soon(self) -> None:
        """A reconfiguration has taught something: the next one is due at once."""
        self._next = 0.0

    def due(self, now: float) -> bool:
        """It is time for the next one."""
        return now >= self._next

    def keep(self, record: LearntRecord, now: float) -> None:
        """Write it. Nothing depends on it, so a store that refuses is told of and asked again later.

        Raises LostLeadershipError.
        """
        self._next = now + EVERY_S
        text, why = record.to_json(), ""
        if text is None:
            why = f"it is larger than {LARGEST} bytes"
        else:
            try:
                self._store.write_learnt(text)
            except ClusterRefusedError as error:
                why = str(error)
        if why and why != self._lacks:
            self._emit("learnt_not_kept", {"why": why})
        self._lacks = why


def _counts(record: LearntRecord) -> dict[str, object]:
    return {name: len(getattr(record, name)) for name in ("curves", "streams", "stores", "handovers", "restarts")}
