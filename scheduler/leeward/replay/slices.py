"""The Parquet slices on disk: one folder for each piece of data time, rows with their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.replay.errors import ReplayError
from leeward.replay.manifest import SLICES, Manifest, Slice
from leeward.replay.spark import java_cause, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: columns of a slice: sequence number, dropoff (epoch seconds), the raw line; the folder's name has its start
SCHEMA = "seq long, t long, r binary"
#: rows that `run` holds at once; a slice with more is read in pieces, so that no dense minute fills memory
CHUNK_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive rows of one slice, in order."""

    first_seq: int
    times: tuple[int, ...]  #: dropoff of each row, epoch seconds, ascending
    lines: tuple[bytes, ...]  #: the raw rows


def write_slices(rows: DataFrame, folder: Path) -> None:
    """Write rows (SCHEMA and `slice`, epoch seconds) that are sorted by slice and seq in each partition."""
    rows.write.mode("overwrite").partitionBy("slice").parquet(f"file://{(folder / SLICES).absolute()}")


def read_chunks(
    spark: SparkSession, folder: Path, manifest: Manifest, from_seq: int, *, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """The rows from the chunk that contains `from_seq` on, in order. Raises ReplayError if damaged."""
    for piece in manifest.slices:
        if piece.last_seq < from_seq:
            continue
        for first in range(piece.first_seq, piece.last_seq + 1, chunk_rows):
            last = min(first + chunk_rows - 1, piece.last_seq)
            if last >= from_seq:
                yield _read(spark, folder, piece, first, last)


def _read(spark: SparkSession, folder: Path, piece: Slice, first: int, last: int) -> Chunk:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    path = folder / SLICES / f"slice={piece.start_s}"
    remedy = f"The folder was changed after it was made; prepare {folder} again."
    try:
        rows = spark.read.schema(SCHEMA).parquet(spark_path(path))
        if last - first + 1 < piece.rows:
            rows = rows.where(rows.seq.between(first, last))
        found = sorted(rows.collect(), key=lambda row: row[0])
    except (PySparkException, Py4JJavaError) as error:
        raise ReplayError(f"slice {path} cannot be read: {java_cause(error)}", remedy=remedy) from None
    if [row[0] for row in found] != list(range(first, last + 1)):
        raise ReplayError(f"slice {path} should hold rows {first}..{last}, it has {len(found)} rows.", remedy=remedy)
    return Chunk(first_seq=first, times=tuple(row[1] for row in found), lines=tuple(bytes(row[2]) for row in found))
