"""The rows of runs in a file, so that a run that was broken off goes on: a JSON object a line.

The first line says of which run the rows are, a line after it has one row of one policy. A line that was being written
when the process ended is dropped. The number of intervals is not part of a run: with more of them it goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from leeward.core.fields import FieldError, each, mapping, number, text, whole
from leeward.core.plan import Slot
from leeward.core.workload import Interval

FORMAT = 1
_ROW = (
    "policy", "interval", "arrived", "departed", "refused", "active", "makespan_s", "violations", "moves",
    "stabilization_s", "plan_s", "placed",
)  # fmt: skip


class RowsFile:
    """Rows that are there, and those that are added; a context manager that closes the file."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """`about`: a JSON object that says which run it is.

        Raises `FieldError` if the file has rows of another run, or something else, and OSError.
        """
        self._path, self._done = path, dict[str, list[Interval]]()
        head = {"leeward_rows": FORMAT, **about}
        path.parent.mkdir(parents=True, exist_ok=True)
        found = path.read_bytes() if path.exists() else b""
        whole_lines = found[: found.rfind(b"\n") + 1]
        if whole_lines:
            self._read(whole_lines, head)
        elif found and not (_line(head) + "\n").encode().startswith(found):
            raise self._wrong("1", found[:40], "this is no file of rows")
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._file.truncate(len(whole_lines))
        if not whole_lines:
            self._write(head)

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def done(self, policy: str) -> tuple[Interval, ...]:
        """The rows of a policy, from interval 0."""
        return tuple(self._done.get(policy, ()))

    def add(self, policy: str, row: Interval) -> None:
        """Writes the next row of a policy; it is in the file when this returns."""
        self._done.setdefault(policy, []).append(row)
        self._write({"policy": policy, **document_of(row), "placed": _plain(row.placed)})

    def _write(self, document: Mapping[str, Any]) -> None:
        self._file.write(_line(document) + "\n")
        self._file.flush()

    def _read(self, lines: bytes, head: Mapping[str, Any]) -> None:
        for position, line in enumerate(lines.splitlines(), start=1):
            try:
                document = json.loads(line)
            except ValueError:
                raise self._wrong(str(position), line[:40], "is not JSON") from None
            if position == 1:
                self._check_head(document, head)
            else:
                self._take(f"{self._path}:{position}", document)

    def _check_head(self, found: object, head: Mapping[str, Any]) -> None:
        if not isinstance(found, dict) or "leeward_rows" not in found:
            raise self._wrong("1", found, "this is no file of rows")
        for key, value in head.items():
            if found.get(key) != value:
                reason = f"its rows are of another run: here it is {value!r}"
                raise FieldError(
                    f"{self._path}: {key}", found.get(key), reason, remedy="name another file, or do that run"
                )

    def _take(self, where: str, document: object) -> None:
        entry = mapping(where, document, frozenset(_ROW), required=_ROW)
        policy, row = text(f"{where}.policy", entry["policy"]), row_of(where, entry)
        known = self._done.setdefault(policy, [])
        if row.interval != len(known):
            reason = f"the next row of policy {policy} is that of interval {len(known)}"
            raise FieldError(f"{where}.interval", row.interval, reason, remedy="name another file")
        known.append(row)

    def _wrong(self, line: str, value: object, reason: str) -> FieldError:
        return FieldError(f"{self._path}:{line}", value, reason, remedy="name another file; a new one is written")


def document_of(row: Interval) -> dict[str, Any]:
    """A row as JSON has it, without the places; an infinite stabilization time is null."""
    return {
        "interval": row.interval, "arrived": list(row.arrived), "departed": list(row.departed),
        "refused": dict(row.refused), "active": row.active, "makespan_s": row.makespan_s, "violations": row.violations,
        "moves": row.moves,
        "stabilization_s": row.stabilization_s if math.isfinite(row.stabilization_s) else None,
        "plan_s": row.plan_s,
    }  # fmt: skip


def row_of(where: str, entry: Mapping[str, Any]) -> Interval:
    """The row of a line; raises `FieldError` for a field of another type."""
    settles = entry["stabilization_s"]
    refused = mapping(f"{where}.refused", entry["refused"])
    placed = mapping(f"{where}.placed", entry["placed"])
    return Interval(
        interval=whole(f"{where}.interval", entry["interval"]),
        arrived=_names(f"{where}.arrived", entry["arrived"]),
        departed=_names(f"{where}.departed", entry["departed"]),
        refused={name: text(f"{where}.refused.{name}", why) for name, why in refused.items()},
        active=whole(f"{where}.active", entry["active"]),
        makespan_s=number(f"{where}.makespan_s", entry["makespan_s"]),
        violations=whole(f"{where}.violations", entry["violations"]),
        moves=whole(f"{where}.moves", entry["moves"]),
        stabilization_s=math.inf if settles is None else number(f"{where}.stabilization_s", settles),
        plan_s=number(f"{where}.plan_s", entry["plan_s"]),
        placed={name: _slots(f"{where}.placed.{name}", slots) for name, slots in placed.items()},
    )


def _names(field: str, value: object) -> tuple[str, ...]:
    return each(field, value, text)


def _plain(placed: Mapping[str, Mapping[str, Slot]]) -> dict[str, dict[str, str]]:
    return {name: {at: f"{slot.node}:{slot.port}" for at, slot in slots.items()} for name, slots in placed.items()}


def _slots(field: str, value: object) -> dict[str, Slot]:
    return {name: _slot(f"{field}.{name}", slot) for name, slot in mapping(field, value).items()}


def _slot(field: str, value: object) -> Slot:
    node, _, port = text(field, value).rpartition(":")
    if not node or not port.isdecimal():
        raise FieldError(field, value, "is no slot", remedy="write node:port")
    return Slot(node, int(port))


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False)
