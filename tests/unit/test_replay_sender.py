"""The sending loop with time and Redis as arguments: even pace, back-pressure, and a Redis that goes away."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from leeward.core.errors import ClusterRefusedError
from leeward.core.secrets import without_password
from leeward.replay.errors import ReplayError
from leeward.replay.feed import Extent, RedisAwayError
from leeward.replay.manifest import Manifest, claim_folder, number_slices, read_manifest
from leeward.replay.prefetch import Prefetch
from leeward.replay.sender import AWAY_S, Clock, Progress, Sender, State
from leeward.replay.slices import Chunk

START = 1_358_308_800
PER_MINUTE, MINUTES = 30, 4
ROWS = PER_MINUTE * MINUTES


class World:
    """A clock, and a stream in memory whose reader is `reader_delay_s` behind (None: it never reads)."""

    def __init__(self, reader_delay_s: float | None = 0.0) -> None:
        self.now_s = 1000.0
        self.reader_delay_s = reader_delay_s
        self.entries: dict[int, float] = {}  # seq -> clock reading when it came
        self.ended: int | None = None
        self.fails: list[bool] = []  # one for each coming call of send: does it fail, after it wrote?
        self.clock = Clock(monotonic=lambda: self.now_s, wall=lambda: self.now_s, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def extent(self) -> Extent:
        return Extent(oldest=min(self.entries, default=0), last=max(self.entries, default=0))

    def progress(self) -> int:
        if self.reader_delay_s is None:
            return 0
        return max((seq for seq, at in self.entries.items() if at + self.reader_delay_s <= self.now_s), default=0)

    def probe(self) -> None:
        """It always answers: only sending fails."""

    def send(self, first_seq: int, times: Sequence[int], lines: Sequence[bytes], *, wall_s: float) -> None:
        fails = self.fails.pop(0) if self.fails else False
        for seq in range(first_seq, first_seq + len(times)):
            self.entries.setdefault(seq, wall_s)
        if fails:
            raise RedisAwayError("Redis cannot be reached.", remedy="Start it.")

    def end(self, seq: int, t: int, *, wall_s: float) -> None:
        self.ended = seq


def manifest() -> Manifest:
    slices = number_slices({START + 60 * minute: PER_MINUTE for minute in range(MINUTES)})
    return Manifest(
        rows=ROWS,
        slice_minutes=1,
        first_s=START,
        last_s=START + 60 * MINUTES - 1,
        bad={},
        digest="d",
        slices=slices,
        sources=(),
    )


def chunks(first: int) -> Iterator[Chunk]:
    for piece in manifest().slices:
        if piece.last_seq >= first:
            times = (piece.start_s,) * piece.rows
            yield Chunk(first_seq=piece.first_seq, times=times, lines=(b"row",) * piece.rows)


def sender(world: World, *, speed: float = 60, limit: int = 1000) -> tuple[Sender, list[Progress]]:
    reports: list[Progress] = []
    return Sender(world, manifest(), speed, limit, reports.append, world.clock, 1), reports


def test_rows_leave_evenly_and_the_end_follows() -> None:
    world = World()
    subject, reports = sender(world)
    last = subject.send_from(1, chunks)
    assert sorted(world.entries) == list(range(1, ROWS + 1))
    assert world.ended == ROWS + 1
    assert (last.state, last.sent, last.sent_now, last.rows) == (State.DONE, ROWS, ROWS, ROWS)
    leaving = [world.entries[seq] for seq in range(1, ROWS + 1)]
    gaps = [b - a for a, b in itertools.pairwise(leaving)]
    assert max(gaps) < 1 / PER_MINUTE + 0.011  # no stall where slices meet; two ticks of slack
    assert leaving[-1] - leaving[0] == pytest.approx(MINUTES, abs=0.1)  # a data minute a second
    assert reports[-1] == last


def test_it_goes_on_in_the_middle_of_a_minute() -> None:
    world = World()
    world.entries = dict.fromkeys(range(1, 46), 0.0)
    subject, _ = sender(world)
    began = world.now_s
    last = subject.send_from(46, chunks)
    assert last.sent_now == ROWS - 45
    assert world.now_s - began == pytest.approx(2.5, abs=0.1)


def test_it_waits_for_a_slow_reader_says_so_and_does_not_burst_afterwards() -> None:
    world = World(reader_delay_s=1.0)
    subject, reports = sender(world, limit=15)
    last = subject.send_from(1, chunks)
    assert sorted(world.entries) == list(range(1, ROWS + 1))
    assert last.blocked_s > 1
    waiting = [report for report in reports if report.state is State.WAITING]
    assert waiting
    assert "rows behind" in waiting[0].note
    by_clock = sorted(world.entries.items())
    for seq, at in by_clock:
        read = sum(other_at + 1.0 <= at for _, other_at in by_clock)
        assert seq - read <= 15
    leaving = [at for _, at in by_clock]
    assert max(leaving.count(at) for at in set(leaving)) <= 2  # the old pace, not a burst


def test_a_lost_answer_repeats_no_row() -> None:
    world = World()
    world.fails = [False, True, False]
    subject, reports = sender(world)
    with pytest.raises(RedisAwayError):
        subject.send_from(1, chunks)
    arrived = max(world.entries)
    before = dict(world.entries)
    subject.wait_for_redis(RedisAwayError("Redis cannot be reached."))
    last = subject.send_from(arrived + 1, chunks)
    assert {seq: world.entries[seq] for seq in before} == before
    assert sorted(world.entries) == list(range(1, ROWS + 1))
    assert last.state is State.DONE
    assert State.RECONNECTING in {report.state for report in reports}


def test_it_gives_up_after_a_minute_even_if_redis_answers_pings() -> None:
    world = World()
    world.send = lambda *args, **kwargs: (_ for _ in ()).throw(
        RedisAwayError("Redis cannot write: read only.", remedy="Point --redis at the writable server.")
    )
    subject, _ = sender(world)
    began = world.now_s
    with pytest.raises(ClusterRefusedError, match=r"read only.*--resume"):
        while True:
            try:
                subject.send_from(1, chunks)
            except RedisAwayError as error:
                subject.wait_for_redis(error)
    assert AWAY_S < world.now_s - began < AWAY_S + 5


def test_prefetch_keeps_order_carries_errors_and_closes() -> None:
    def source() -> Iterator[int]:
        yield from range(5)
        raise ReplayError("slice is damaged.")

    seen = []
    with pytest.raises(ReplayError, match="damaged"):
        for item in Prefetch(source()):
            seen.append(item)  # noqa: PERF402 - what came before the error is to be seen
    assert seen == list(range(5))
    endless = Prefetch(iter(range(10**9)))
    assert next(iter(endless)) == 0
    endless.close()
    assert not endless._thread.is_alive()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@host:1/0", "redis://:***@host:1/0"),
        ("redis://me:secret@host/0", "redis://me:***@host/0"),
        ("redis://host:1/0", "redis://host:1/0"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_manifest_survives_its_file_and_bad_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"has no manifest\.json.*leeward replay prepare"):
        read_manifest(tmp_path)
    manifest().write(tmp_path)
    assert read_manifest(tmp_path) == manifest()
    path = tmp_path / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(ReplayError, match="'version' is 2, this program reads 1"):
        read_manifest(tmp_path)
    path.write_text(text.replace('"rows"', '"lines"', 1))
    with pytest.raises(ReplayError, match="is damaged"):
        read_manifest(tmp_path)
    path.write_text(text[:50])
    with pytest.raises(ReplayError, match="is not JSON"):
        read_manifest(tmp_path)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all my work")
    with pytest.raises(ReplayError, match=r"holds other files \(thesis\.tex\)"):
        claim_folder(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    manifest().write(own)
    claim_folder(own)
    assert not (own / "manifest.json").exists()  # unfinished until written anew
