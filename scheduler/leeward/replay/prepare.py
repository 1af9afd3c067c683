"""CSV files of any size -> Parquet slices of data time, numbered in the order of their dropoffs (Spark).

Two passes over the text. The first counts rows by file, verdict and slice: small, and enough to number the
slices without a gap. The second shuffles rows to their slice, numbers them inside it by (dropoff, file, place
in the file) and writes. No step holds more than a sort buffer: memory does not grow with the input.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from leeward.replay.errors import ReplayError
from leeward.replay.inputs import find_inputs, foreign_file
from leeward.replay.manifest import Manifest, Source, claim_folder, digest_of, number_slices
from leeward.replay.rows import COLUMNS, DATE_PATTERN, DROPOFF, PICKUP, BadRow
from leeward.replay.slices import write_slices
from leeward.replay.spark import java_cause, spark_path, spark_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: input bytes for each shuffle partition: one task sorts so much at a time
_PARTITION_BYTES = 32 * 1024 * 1024
_FEW_PARTITIONS = 4
_GZIP_RATIO = 5  # taxi rows shrink to about a fifth


@dataclass(frozen=True, slots=True, kw_only=True)
class _Census:
    """The first pass: rows by file and verdict, and by slice."""

    rows: dict[int, int]  #: file index -> good rows
    bad: dict[int, Counter[str]]  #: file index -> reason -> rows
    slices: dict[int, int]  #: slice start (epoch seconds) -> good rows
    first_s: int
    last_s: int


def prepare(
    paths: Sequence[Path],
    out: Path,
    *,
    slice_minutes: int = 5,
    memory_mb: int = 640,
    cores: int = 2,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Manifest:
    """Prepare `paths` (files or folders of CSVs) into `out` and return its manifest.

    `tell` hears what goes on. Raises ReplayError (inputs, folder) and SparkStartError.
    """
    if slice_minutes < 1:
        raise ReplayError(f"--slice-minutes is {slice_minutes}.", remedy="Give 1 or more.")
    inputs = find_inputs(paths)
    claim_folder(out)
    tell("starting Spark")
    partitions = max(_FEW_PARTITIONS, sum(map(_unpacked_bytes, inputs)) // _PARTITION_BYTES)
    options = {"memory_mb": memory_mb, "cores": cores, "partitions": partitions}
    context = nullcontext(spark) if spark else spark_session(out, brief=partitions == _FEW_PARTITIONS, **options)
    with context as session, TemporaryDirectory(dir=out, prefix=".lookups-") as lookups:
        return _prepare(session, inputs, out, Path(lookups).resolve(), slice_minutes, tell)


def _prepare(
    spark: SparkSession,
    inputs: Sequence[Path],
    out: Path,
    lookups: Path,
    slice_minutes: int,
    tell: Callable[[str], None],
) -> Manifest:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        tell(f"reading {len(inputs)} file{'s' * (len(inputs) > 1)}")
        rows = _judged(spark, inputs, lookups, slice_minutes * 60)
        census = _take_census(rows)
        _check(inputs, census)
        manifest = _manifest(inputs, census, slice_minutes)
        tell(f"sorting and writing {manifest.rows} rows in {len(manifest.slices)} slices")
        digest = _write(_numbered(spark, rows, lookups, manifest), out, manifest)
    except (PySparkException, Py4JJavaError) as error:
        raise ReplayError(
            f"Spark could not prepare the files: {java_cause(error)}",
            remedy="Check that they are whole (gzip -t) and that the disk has room.",
        ) from error
    manifest = replace(manifest, digest=digest)
    manifest.write(out)
    return manifest


def _unpacked_bytes(path: Path) -> int:
    return path.stat().st_size * (_GZIP_RATIO if path.name.lower().endswith(".gz") else 1)


def _judged(spark: SparkSession, inputs: Sequence[Path], lookups: Path, slice_s: int) -> DataFrame:
    """Columns r (raw line), file (index), block and place (order in it), verdict (null is good), t, slice."""
    from pyspark.sql import functions as F

    lines = spark.read.text([spark_path(path) for path in inputs])
    # Spark names a file by an encoded URI with one or three slashes
    index_of = {str(path): index for index, path in enumerate(inputs)}
    uris = [(urlsplit(uri).path, index_of[unquote(urlsplit(uri).path)]) for uri in lines.inputFiles()]
    order = _table(spark, lookups / "files", uris, {"path": "string", "file": "int"})
    placed = lines.select(
        F.col("value").alias("line"),
        F.regexp_replace("_metadata.file_path", "^file:/+", "/").alias("path"),
        # rows of one block of a file are read in order by one task, so the pair orders the rows of a file
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("place"),
    ).join(F.broadcast(order), "path")
    columns = F.split("line", ",", -1)
    dates = [F.get(columns, F.lit(index)) for index in (PICKUP, DROPOFF)]
    dropoff = _seconds(dates[1])
    return placed.select(
        F.col("line").cast("binary").alias("r"),
        "file",
        "block",
        "place",
        _verdict(columns, dates).alias("verdict"),
        dropoff.alias("t"),
        (F.floor(dropoff / slice_s) * slice_s).alias("slice"),
    )


def _table(spark: SparkSession, path: Path, rows: Sequence[tuple[Any, ...]], columns: dict[str, str]) -> DataFrame:
    """A small table by way of a file: one made from Python values would start Python workers, 100 MB each."""
    path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return spark.read.schema(schema).json(spark_path(path))


def _seconds(date: Column) -> Column:
    from pyspark.sql import functions as F

    return F.unix_timestamp(F.try_to_timestamp(date, F.lit("yyyy-MM-dd HH:mm:ss")))


def _verdict(columns: Column, dates: Sequence[Column]) -> Column:
    """`rows.judge` as an expression: null for a row that can be replayed."""
    from pyspark.sql import functions as F

    unlike = [~F.rlike(date, F.lit(DATE_PATTERN)) for date in dates]
    missing = [_seconds(date).isNull() for date in dates]
    return (
        F.when(F.trim("line") == "", BadRow.EMPTY_LINE.value)
        .when(F.size(columns) != len(COLUMNS), BadRow.WRONG_COLUMNS.value)
        .when(unlike[0] | unlike[1], BadRow.UNPARSABLE_DATE.value)
        .when(missing[0] | missing[1], BadRow.IMPOSSIBLE_DATE.value)
    )


def _take_census(rows: DataFrame) -> _Census:
    from pyspark.sql import functions as F

    slice_of_good = F.when(F.col("verdict").isNull(), F.col("slice")).alias("slice")
    groups = rows.groupBy("file", "verdict", slice_of_good).agg(
        F.count("*").alias("n"),
        F.min("t").alias("first"),
        F.max("t").alias("last"),
    )
    good: Counter[Any] = Counter()
    slices: Counter[Any] = Counter()
    bad: dict[int, Counter[str]] = {}
    first: list[int] = []
    last: list[int] = []
    for group in groups.collect():
        if group.verdict is not None:
            bad.setdefault(group.file, Counter())[group.verdict] += group.n
            continue
        good[group.file] += group.n
        slices[group.slice] += group.n
        first.append(group.first)
        last.append(group.last)
    return _Census(
        rows=dict(good),
        bad=bad,
        slices=dict(slices),
        first_s=min(first, default=0),
        last_s=max(last, default=0),
    )


def _check(inputs: Sequence[Path], census: _Census) -> None:
    for index, path in enumerate(inputs):
        if census.bad.get(index) and not census.rows.get(index):
            raise foreign_file(path)
    if not census.rows:
        raise ReplayError(f"{', '.join(map(str, inputs[:3]))}: no rows at all.", remedy="Name files that have rows.")


def _manifest(inputs: Sequence[Path], census: _Census, slice_minutes: int) -> Manifest:
    slices = number_slices(census.slices)
    sources = tuple(
        Source(name=path.name, rows=census.rows.get(i, 0), bad=dict(sorted(census.bad.get(i, Counter()).items())))
        for i, path in enumerate(inputs)
    )
    bad = sum(census.bad.values(), Counter())
    return Manifest(
        rows=sum(census.slices.values()),
        slice_minutes=slice_minutes,
        first_s=census.first_s,
        last_s=census.last_s,
        bad=dict(sorted(bad.items())),
        slices=slices,
        sources=sources,
        digest="",  # of the rows as they are written
    )


def _write(numbered: DataFrame, out: Path, manifest: Manifest) -> str:
    """Writes the slices; the digest of their rows, each with its number: the same rows in another order differ."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    written = Observation()
    # taken while the rows are written; no two hashes are of the same number, so none cancels another
    check = F.bit_xor(F.xxhash64("seq", "r")).alias("check")
    write_slices(numbered.observe(written, check), out)
    return digest_of(manifest.slices, written.get["check"])


def _numbered(spark: SparkSession, rows: DataFrame, lookups: Path, manifest: Manifest) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    firsts = [(piece.start_s, piece.first_seq) for piece in manifest.slices]
    starts = _table(spark, lookups / "slices", firsts, {"slice": "long", "first": "long"})
    in_slice = Window.partitionBy("slice").orderBy("t", "file", "block", "place")
    return (
        rows.where("verdict is null")
        .join(F.broadcast(starts), "slice")
        .withColumn("seq", F.col("first") + F.row_number().over(in_slice) - 1)
        .select("seq", "t", "r", "slice")
    )
