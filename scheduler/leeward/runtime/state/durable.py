"""The cut that no restore goes back behind: a source may forget its input, a sink make its output final. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from leeward.runtime.state.keyed import Entries


class Durable:
    """The cuts that this process has exported or restored, and the oldest one that is still kept.

    Older input may go, and output become final, only behind the *oldest* cut that the coordinator keeps: where a newer
    one cannot be read, everything is restored from that.
    """

    def __init__(self) -> None:
        self._states: dict[int, Entries | None] = {}  # cut -> a source's state as of it
        self._told = 0

    def exported(self, cut: int, state: Entries | None) -> None:
        """This process has exported its part of a cut."""
        self._states[cut] = state

    def restored(self, cut: int, state: Entries | None) -> None:
        """It has restored this cut. Cuts exported since belong to a past that is undone."""
        self._states = {known: before for known, before in self._states.items() if known < cut} | {cut: state}

    def committed(self, cuts: Iterable[int]) -> Iterator[tuple[int, Entries | None]]:
        """The oldest of the cuts that are kept, with its state: once, if this process knows it."""
        oldest = min(cuts, default=0)
        self._states = {cut: state for cut, state in self._states.items() if cut >= oldest}
        if oldest > self._told and oldest in self._states:
            self._told = oldest
            yield oldest, self._states[oldest]
