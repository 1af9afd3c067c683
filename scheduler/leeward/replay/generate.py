"""Taxi rows made by Spark: rate and geography follow the real year, rows depend on the seed only."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.replay.errors import ReplayError
from leeward.replay.manifest import Manifest, Source, claim_folder, digest_of, number_slices
from leeward.replay.profile import DAY_MIN, WEEK_MIN, Curve, Profile, day_curve, load_week, real_curve
from leeward.replay.rows import epoch_s
from leeward.replay.slices import SCHEMA, write_slices
from leeward.replay.spark import spark_session
from leeward.replay.trips import TripModel, load_trips, minute_rows

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

GENERATOR_VERSION = 1  # raise it when equal settings give other rows
#: rows per minute of data, which at 60 times real time are tuples per second
DEFAULT_PEAK, DEFAULT_TROUGH = 215.0, 60.0
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a generation; equal settings give equal bytes."""

    hours: float = 3.0  #: length of the data
    seed: int = 1
    profile: Profile = Profile.DAY
    start: str = "2013-01-16 04:00:00"  #: first minute of the data; its weekday chooses the curve
    peak_rate: float | None = None  #: rows per minute at the peak; None: 215, or the real rate for `real`
    trough_rate: float = DEFAULT_TROUGH  #: rows per minute at the trough, profile `day` only
    slice_minutes: int = 5

    @property
    def minutes(self) -> int:
        """Length of the data in minutes."""
        return round(self.hours * 60)

    @property
    def start_s(self) -> int:
        """Data time of the first minute, epoch seconds."""
        return epoch_s(self.start)


def check_settings(settings: Settings) -> None:
    """Raises ReplayError naming option and value."""
    if settings.minutes < 1:
        raise ReplayError(f"--hours is {settings.hours}.", remedy="Give more than 0.0083 (half a minute).")
    if settings.slice_minutes < 1:
        raise ReplayError(f"--slice-minutes is {settings.slice_minutes}.", remedy="Give 1 or more.")
    if settings.peak_rate is not None and settings.peak_rate <= 0:
        raise ReplayError(f"--peak-rate is {settings.peak_rate}.", remedy="Give more than 0 rows per minute.")
    peak = settings.peak_rate or DEFAULT_PEAK
    if settings.profile is Profile.DAY and not 0 < settings.trough_rate <= peak:
        raise ReplayError(f"--trough-rate is {settings.trough_rate}.", remedy=f"Give a rate in (0, {peak:g}].")
    try:
        whole_minute = settings.start_s % 60 == 0
    except ValueError as error:
        raise ReplayError(f"--start: {error}.", remedy="Write it as 2013-01-16 04:00:00.") from None
    if not whole_minute:
        raise ReplayError(f"--start {settings.start!r} is not a whole minute.", remedy="Let it end in :00.")


def curve_of(settings: Settings) -> Curve:
    """The expected rows of every minute."""
    week = load_week()
    minute_of_week = (settings.start_s // 60 + _EPOCH_WEEKDAY * DAY_MIN) % WEEK_MIN
    peak = settings.peak_rate
    match settings.profile:
        case Profile.DAY:
            return day_curve(
                week,
                weekday=minute_of_week // DAY_MIN,
                minutes=settings.minutes,
                trough=settings.trough_rate,
                peak=peak or DEFAULT_PEAK,
            )
        case Profile.REAL:
            return real_curve(week, start_minute=minute_of_week, minutes=settings.minutes, peak=peak)
        case Profile.FLAT:
            return Curve(rates=(peak or DEFAULT_PEAK,) * settings.minutes)


def counts_of(settings: Settings) -> list[int]:
    """[minutes] The rows that every minute has."""
    return curve_of(settings).counts(settings.seed)


def generate(
    settings: Settings,
    *,
    out: Path | None,
    csv: Path | None = None,
    memory_mb: int = 640,
    cores: int = 2,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Manifest:
    """Write slices into folder `out` and / or all rows into the file `csv` (gzip if it ends in .gz).

    Raises ReplayError (options, folder) and SparkStartError.
    """
    check_settings(settings)
    if out is None and csv is None:
        raise ReplayError("neither --out nor --csv is given.", remedy="Say where the rows shall go.")
    if out is not None:
        claim_folder(out)
    counts = counts_of(settings)
    manifest = manifest_of(settings, counts)
    tell("starting Spark")
    scratch = out or (csv or Path()).absolute().parent
    context = nullcontext(spark) if spark else spark_session(scratch, memory_mb=memory_mb, cores=cores)
    with context as session:
        rows = generated_rows(session, settings, counts, manifest)
        if out is not None:
            tell(f"writing {manifest.rows} rows in {len(manifest.slices)} slices")
            frame = session.createDataFrame(rows, f"{SCHEMA}, slice long", verifySchema=False)
            write_slices(frame.sortWithinPartitions("slice", "seq"), out)
            manifest.write(out)
        if csv is not None:
            tell(f"writing {manifest.rows} rows to {csv}")
            _write_csv(rows, csv)
    return manifest


def manifest_of(settings: Settings, counts: list[int]) -> Manifest:
    """The manifest of the rows to come: the counts alone fix every sequence number."""
    start_s, slice_s = settings.start_s, settings.slice_minutes * 60
    minutes = [(start_s + 60 * m, n) for m, n in enumerate(counts) if n]
    if not minutes:
        raise ReplayError("these settings give no row.", remedy="Raise --peak-rate or --hours.")
    by_slice = {
        start: sum(n for _, n in group)
        for start, group in groupby(minutes, key=lambda minute: minute[0] // slice_s * slice_s)
    }
    slices = number_slices(by_slice)
    chosen = asdict(settings)
    first, last = ((minute[0] - start_s) // 60 for minute in (minutes[0], minutes[-1]))
    rows = sum(counts)
    return Manifest(
        rows=rows,
        slice_minutes=settings.slice_minutes,
        first_s=_minute(settings, counts, first)[0][0],
        last_s=_minute(settings, counts, last)[-1][0],
        bad={},
        digest=digest_of(GENERATOR_VERSION, chosen),
        slices=slices,
        generator=chosen,
        sources=(Source(name="generator", rows=rows, bad={}),),
    )


def _minute(settings: Settings, counts: list[int], index: int) -> list[tuple[int, bytes]]:
    start_s = settings.start_s + 60 * index
    return minute_rows(_model(), seed=settings.seed, index=index, start_s=start_s, count=counts[index])


def generated_rows(
    spark: SparkSession,
    settings: Settings,
    counts: list[int],
    manifest: Manifest,
    *,
    pieces: int | None = None,
) -> RDD:
    """(seq, t, line, slice) of every row in order; `pieces` (partitions) changes nothing but the speed."""
    jobs = list(_jobs(settings, counts, manifest))
    pieces = pieces or max(2, min(len(jobs), manifest.rows // 50_000))
    return spark.sparkContext.parallelize(jobs, pieces).flatMap(partial(_slice_rows, settings.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One slice to make."""

    slice_s: int
    first_seq: int
    minutes: tuple[tuple[int, int, int], ...]  #: (index of the minute, its start in epoch seconds, rows)


def _jobs(settings: Settings, counts: list[int], manifest: Manifest) -> Iterator[_Job]:
    for piece in manifest.slices:
        first = max(0, (piece.start_s - settings.start_s) // 60)
        end = (piece.start_s - settings.start_s) // 60 + settings.slice_minutes
        minutes = tuple((m, settings.start_s + 60 * m, n) for m, n in enumerate(counts[first:end], first))
        yield _Job(slice_s=piece.start_s, first_seq=piece.first_seq, minutes=minutes)


def _slice_rows(seed: int, job: _Job) -> Iterator[tuple[int, int, bytes, int]]:
    seq = job.first_seq
    for index, start_s, count in job.minutes:
        for dropoff_s, line in minute_rows(_model(), seed=seed, index=index, start_s=start_s, count=count):
            yield seq, dropoff_s, line, job.slice_s
            seq += 1


@cache
def _model() -> TripModel:
    """One for each Python worker: its weights take a second to fill."""
    return TripModel(load_trips())


def _write_csv(rows: RDD, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = partial(gzip.GzipFile, mtime=0) if path.name.endswith(".gz") else open
    with opener(path, mode="wb") as stream:
        for _, _, line, _ in rows.toLocalIterator(prefetchPartitions=True):
            stream.write(line + b"\n")
