"""Serves with the settings in force, and anew when their file has changed; the last good ones stay in force.

Services end in order before they begin anew: each lets go of its lock, and the next one takes over as another process
would, also in the middle of a reconfiguration.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import eq
from typing import Generic, TypeVar

from leeward.control.ports import EventSink
from leeward.core.errors import LeewardError

#: Between two looks at the file, s.
LOOK_S = 2.0

#: Settings with all that was made of them.
T = TypeVar("T")


class Reloading(Generic[T]):
    """See the module. `text`: of the file; `read`: settings of such a text. Both may raise LeewardError.

    `seen`: the text of the first settings, which may take minutes to prepare; `same`: nothing has to begin anew.
    """

    def __init__(
        self, first: T, *, seen: str, text: Callable[[], str], read: Callable[[str], T], sink: EventSink,
        same: Callable[[T, T], bool] = eq, look_s: float = LOOK_S,
    ) -> None:  # fmt: skip
        self._in_force, self._text, self._read, self._sink, self._look_s = first, text, read, sink, look_s
        self._same = same
        self._seen: str | None = seen

    def run(self, serve: Callable[[T, threading.Event], None], stop: threading.Event) -> None:
        """`serve(settings, event)` until `stop`, or until it returns by itself; the event asks it to return."""
        again = True
        while again and not stop.is_set():
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(over, stop), name="leeward-settings", daemon=True)
            self._changed = False
            watch.start()
            try:
                serve(self._in_force, over)
            finally:
                over.set()
                watch.join()
            again = self._changed

    def look(self) -> bool:
        """The file has other settings, which are good: they are in force from now on."""
        text = self._now()
        if text == self._seen:
            return False
        self._seen = text
        try:
            found = self._read(self._text() if text is None else text)
        except LeewardError as error:
            self._sink.emit("settings_refused", {"why": str(error)})
            return False
        except Exception as error:  # of a module of the user's own that the file names
            self._sink.emit("settings_refused", {"why": f"{type(error).__name__}: {error}"})
            return False
        changed = not self._same(self._in_force, found)
        self._sink.emit("settings_reloaded", {"changed": changed})
        if changed:  # a comment, or the way back from a slip, is no reason to take everything over anew
            self._in_force = found
        return changed

    def _watch(self, over: threading.Event, stop: threading.Event) -> None:
        while not over.is_set():
            if stop.wait(self._look_s):
                over.set()
            elif not over.is_set() and self.look():
                self._changed = True
                over.set()

    def _now(self) -> str | None:
        """None: it cannot be read."""
        try:
            return self._text()
        except LeewardError:
            return None
