"""The sink's file: one line of JSON for each result."""

from __future__ import annotations

import json
import os


class Notes:
    """`{"seq": ..., "sent": ..., "received": ..., "row": ...}`; times are seconds on the wall clock.

    After a restore a result may be written again, under the same `seq`: the first line of a `seq` counts.
    """

    def __init__(self, path: str) -> None:
        """Opens, or makes, the file. Raises OSError."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, seq: int, *, sent: float, received: float, row: str) -> None:
        """Appends a result in one write, so that a process that is killed leaves no half line."""
        line = json.dumps({"seq": seq, "sent": sent, "received": received, "row": row})
        os.write(self._file, f"{line}\n".encode())

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def open_notes(path: str) -> Notes | None:
    """The file, or None without a path."""
    return Notes(path) if path else None
