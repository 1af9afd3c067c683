"""Prepared slices -> Redis stream, at a multiple of real time, resumable, never far ahead of the reader.

The progress is read from the stream itself, never remembered: after a kill, a lost connection or a Redis that
came back with less, replay goes on after the newest entry there. Entry ids are the sequence numbers and only
grow, so no row can be there twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.replay.errors import ReplayError, StreamTakenError
from leeward.replay.feed import Feed, RedisAwayError
from leeward.replay.manifest import Manifest, read_manifest
from leeward.replay.sender import Clock, Progress, Sender, State
from leeward.replay.slices import read_chunks
from leeward.replay.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replay(
    folder: Path | str,
    redis_url: str,
    stream: str = "taxi:in",
    speed: float = 60.0,
    limit: int = 20_000,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    resume: bool = False,
    from_seq: int | None = None,
    spark: SparkSession | None = None,
    clock: Clock | None = None,
    secrets: Secrets = NO_SECRETS,
) -> Progress:
    """Send the rows of a prepared folder, then the end entry; returns the last report.

    `speed`: data seconds per second, 0 for as fast as the reader allows; `limit`: rows in the stream that
    the reader has not consumed; `resume`: go on after the newest entry; `from_seq`: leave out earlier rows.
    The password is that of `secrets`.
    Raises ReplayError, StreamTakenError, SparkStartError, ClusterRefusedError (Redis), and RedisAwayError
    when Redis is not there at the start.
    """
    folder = Path(folder)
    _check_options(speed, limit)
    manifest = read_manifest(folder)
    feed = Feed(redis_url, stream, secrets)
    first = starting_point(feed, manifest, resume=resume, from_seq=from_seq)
    sender = Sender(feed, manifest, speed, limit, on_progress or (lambda progress: None), clock or Clock(), first)
    if first > manifest.rows + 1:
        return sender.report(State.DONE, note="everything was sent before")
    sender.report(State.STARTING)
    with nullcontext(spark) if spark else spark_session(folder) as session:
        read = partial(read_chunks, session, folder, manifest)
        while True:
            try:
                # asked, not remembered: after a lost connection the last batch may or may not have arrived
                return sender.send_from(_next_seq(feed, from_seq), read)
            except RedisAwayError as error:
                sender.wait_for_redis(error)


def _check_options(speed: float, limit: int) -> None:
    if not 0 <= speed < float("inf"):
        raise ReplayError(f"--speed is {speed}.", remedy="Give a positive factor, or 0 for as fast as possible.")
    if limit < 1:
        raise ReplayError(f"--limit is {limit}.", remedy="Give 1 row or more.")


def starting_point(feed: Feed, manifest: Manifest, *, resume: bool, from_seq: int | None) -> int:
    """The first sequence number to send; rows + 1 stands for the end entry, rows + 2 for nothing.

    Raises StreamTakenError when the stream does not fit, ReplayError for a `from_seq` outside the data or behind a gap.
    """
    if from_seq is not None and not 1 <= from_seq <= manifest.rows + 1:
        raise ReplayError(f"--from-seq is {from_seq}.", remedy=f"Give 1 to {manifest.rows + 1}.")
    last, consumed = feed.extent().last, feed.progress()
    if last and not resume:
        raise StreamTakenError(
            f"stream {feed.stream} holds entries up to {last} already.",
            remedy=f"Add --resume to go on after it, use another --stream, or delete it (DEL {feed.stream}).",
        )
    if consumed and not resume:
        raise StreamTakenError(
            f"stream {feed.stream} is empty, yet {feed.stream}:progress says that {consumed} rows were read.",
            remedy=f"Add --resume to go on after them, or DEL {feed.stream}:progress.",
        )
    if (last or consumed) and feed.digest() not in (manifest.digest, None):
        raise StreamTakenError(
            f"stream {feed.stream} was begun with other data ({feed.digest()}, not {manifest.digest}).",
            remedy="Run the folder that it was begun with, or use another --stream.",
        )
    newest = max(last, consumed)
    if newest > manifest.rows + 1:
        raise StreamTakenError(
            f"stream {feed.stream} is at {newest}, the data has only {manifest.rows} rows.",
            remedy="Use another --stream.",
        )
    if newest and from_seq is not None and from_seq > newest + 1:  # no reader goes on behind a gap
        raise ReplayError(
            f"--from-seq is {from_seq}: stream {feed.stream} is at {newest}, and rows between would be missing.",
            remedy=f"Leave --from-seq out to go on with {newest + 1}, or use another --stream.",
        )
    if not last:
        feed.begin(manifest.digest, None if consumed else from_seq or 1)
    return _next_seq(feed, from_seq)


def _next_seq(feed: Feed, from_seq: int | None) -> int:
    """After the newest entry, and after what was read even if Redis has lost it since."""
    return max(feed.extent().last, feed.progress(), (from_seq or 1) - 1) + 1
