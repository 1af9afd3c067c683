"""The loop around the pure pace: waits, sends, reports, and comes back when Redis was away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from leeward.core.errors import ClusterRefusedError
from leeward.replay.feed import Feed, RedisAwayError
from leeward.replay.manifest import Manifest
from leeward.replay.pacing import Pace, moments
from leeward.replay.prefetch import Prefetch
from leeward.replay.slices import Chunk

BATCH_ROWS = 500  # rows sent in one go at most
TICK_S = 0.005  # rows due within a tick leave together
REPORT_S = 0.25  # time between two reports; also how old the reader's progress may be
AWAY_S = 60.0  # how long Redis may be away before replay gives up
_BACKOFF_S = (0.1, 0.2, 0.5, 1.0, 2.0)  # the last one repeats


class State(StrEnum):
    """Progress of a replay."""

    STARTING = "starting_spark"
    SENDING = "sending"
    WAITING = "waiting_for_reader"
    RECONNECTING = "reconnecting"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A report; the last one has state DONE and is what `replay` returns."""

    state: State
    rows: int  #: rows of the whole data set
    sent: int = 0  #: sequence number of the newest row in the stream
    sent_now: int = 0  #: rows that this call sent
    backlog: int = 0  #: rows in the stream that the reader has not durably consumed
    data_s: int = 0  #: dropoff of the newest row sent, epoch seconds
    late_s: float = 0.0  #: how long after its due time the newest row left
    blocked_s: float = 0.0  #: time spent waiting for the reader so far
    note: str = ""  #: obstacle, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time as arguments: tests bring their own."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class Sender:
    """Sends one data set into one stream. One thread; Spark reads ahead in another."""

    def __init__(
        self,
        feed: Feed,
        manifest: Manifest,
        speed: float,
        limit: int,
        on_progress: Callable[[Progress], None],
        clock: Clock,
        first: int,
    ) -> None:
        self.feed, self.manifest, self.clock = feed, manifest, clock
        self.speed, self.limit, self.on_progress = speed, limit, on_progress
        self.consumed = self._floor = 0
        self.progress = Progress(state=State.STARTING, rows=manifest.rows, sent=min(first - 1, manifest.rows))
        self.pace: Pace | None = None
        self._reported_s = float("-inf")
        self._away_since: float | None = None  # clock at the first failure since a row went in
        self._attempts = 0

    def send_from(self, first: int, read: Callable[[int], Iterator[Chunk]]) -> Progress:
        """Send everything from row `first` on; `read` gives the chunks from the one that contains a row on.

        Raises RedisAwayError at any time.
        """
        self.pace = None
        extent = self.feed.extent()
        # rows before the oldest entry were consumed, or left out on purpose
        self._floor = extent.oldest - 1 if extent.oldest else first - 1
        self.progress = replace(self.progress, sent=min(first - 1, self.manifest.rows))
        self._refresh()
        chunks: Prefetch[Chunk] = Prefetch(read(first))
        try:
            for chunk in chunks:
                self._send_chunk(chunk, first)
        finally:
            chunks.close()
        self._make_room(0)
        self.feed.end(self.manifest.rows + 1, self.manifest.last_s, wall_s=self.clock.wall())
        self._refresh()
        return self.report(State.DONE)

    def _send_chunk(self, chunk: Chunk, first: int) -> None:
        due = moments(chunk.times)
        index = max(0, first - chunk.first_seq)
        while index < len(due):
            if self.pace is None:
                self.pace = Pace(clock_s=self.clock.monotonic(), data_s=due[index], speed=self.speed)
            ready = min(self.pace.count_due(due, index, self.clock.monotonic()), BATCH_ROWS)
            if not ready:
                self._sleep_until(self.pace.due_s(due[index]))
                continue
            ready = min(ready, self._make_room(ready))
            rows = slice(index, index + ready)
            self.feed.send(chunk.first_seq + index, chunk.times[rows], chunk.lines[rows], wall_s=self.clock.wall())
            index += ready
            self._note_sent(chunk, index, due[index - 1], ready)

    def _sleep_until(self, due_s: float) -> None:
        """Sleep at least a tick (rows due within it leave together), at most until the next report."""
        self.clock.sleep(min(max(TICK_S, due_s - self.clock.monotonic()), REPORT_S))
        self._report_sometimes()

    def _make_room(self, wanted: int) -> int:
        """How many rows may leave now, at least 1; waits while the reader is `limit` rows behind."""
        room = self._room()
        if room < max(1, wanted):
            self._refresh()
            room = self._room()
        if room >= 1:
            return room
        began = self.clock.monotonic()
        already_s = self.progress.blocked_s
        while room < 1:
            blocked = already_s + self.clock.monotonic() - began
            self.progress = replace(self.progress, blocked_s=blocked)
            self._report_sometimes(State.WAITING, f"the reader is {self.progress.backlog} rows behind")
            self.clock.sleep(0.05)
            self._refresh()
            room = self._room()
        if self.pace is not None:  # going on at the old pace: catching up would only fill the stream again
            self.pace = self.pace.delayed(self.clock.monotonic() - began)
        return room

    def _room(self) -> int:
        return self.limit - (self.progress.sent - self.consumed)

    def _refresh(self) -> None:
        self.consumed = max(self.feed.progress(), self._floor)
        self.progress = replace(self.progress, backlog=max(0, self.progress.sent - self.consumed))

    def _note_sent(self, chunk: Chunk, index: int, due_data_s: float, count: int) -> None:
        paced = self.pace if self.speed else None
        late = max(0.0, self.clock.monotonic() - paced.due_s(due_data_s)) if paced else 0.0
        self.progress = replace(
            self.progress,
            sent=chunk.first_seq + index - 1,
            sent_now=self.progress.sent_now + count,
            data_s=chunk.times[index - 1],
            late_s=late,
        )
        self._away_since = None
        self._report_sometimes()

    def _report_sometimes(self, state: State = State.SENDING, note: str = "") -> None:
        if self.clock.monotonic() - self._reported_s >= REPORT_S:
            self._refresh()
            self.report(state, note)

    def report(self, state: State, note: str = "") -> Progress:
        """Tell the caller how things stand."""
        self._reported_s = self.clock.monotonic()
        self.progress = replace(self.progress, state=state, note=note)
        self.on_progress(self.progress)
        return self.progress

    def wait_for_redis(self, error: RedisAwayError) -> None:
        """Come back once Redis answers. Raises ClusterRefusedError if nothing went in for AWAY_S seconds."""
        if self._away_since is None:
            self._away_since, self._attempts = self.clock.monotonic(), 0
        while True:
            away_s = self.clock.monotonic() - self._away_since
            if away_s > AWAY_S:
                raise ClusterRefusedError(
                    f"{error.message} No row went in for {away_s:.0f} s; {self.progress.sent} was the last.",
                    remedy=f"{error.remedy} Then go on with --resume.",
                ) from error
            self.report(State.RECONNECTING, error.message)
            self.clock.sleep(_BACKOFF_S[min(self._attempts, len(_BACKOFF_S) - 1)])
            self._attempts += 1
            try:
                self.feed.probe()
                return
            except RedisAwayError as again:
                error = again
