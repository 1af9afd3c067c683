"""Replay on a real Spark and a real Redis: every row once and in order, whatever happens."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from bolts.query1.settings import read_settings
from bolts.query1.stores import TaxiStream
from leeward.core.errors import ClusterRefusedError
from leeward.replay.errors import ReplayError, StreamTakenError
from leeward.replay.feed import Feed, RedisAwayError
from leeward.replay.generate import Settings, curve_of, generate, generated_rows, manifest_of
from leeward.replay.manifest import read_manifest
from leeward.replay.prepare import prepare
from leeward.replay.rows import BadRow, epoch_s, judge
from leeward.replay.run import replay, starting_point
from leeward.replay.sender import Progress, State
from leeward.replay.slices import read_chunks
from tests.helpers.replayed import MANY, lines_of, rows_in
from tests.helpers.servers import PASSWORD, URL_PASSWORD, RedisServer, free_port
from tests.helpers.shared_folder import RIDES, needs

#: the command line with replay's part alone
COMMAND = "import typer, leeward.cli.replay as r; a = typer.Typer(); a.callback()(lambda: None); r.register(a); a()"


def row(dropoff: str, name: str = "A", pickup: str = "2013-01-01 00:00:00") -> str:
    return f"{name},B,{pickup},{dropoff},120,0.44,-73.95,40.71,-73.96,40.71,CSH,3.50,0.50,0.50,0.00,0.00,4.50"


def by_dropoff(lines: list[bytes]) -> list[bytes]:
    return sorted(lines, key=lambda line: line.split(b",")[3])  # stable: ties keep their order


@needs(RIDES)
def test_real_rows_arrive_exactly_and_in_order(spark, client, server, tmp_path) -> None:
    manifest = prepare([RIDES], tmp_path, spark=spark)
    assert (manifest.rows, manifest.bad) == (7068, {})
    last = replay(tmp_path, server.url, speed=0, limit=MANY, spark=spark)
    assert (last.state, last.sent) == (State.DONE, 7068)
    assert rows_in(client) == lines_of(RIDES)


def test_unsorted_files_in_a_folder_become_one_sorted_stream(spark, client, server, tmp_path) -> None:
    times = [f"2013-01-01 00:{minute:02d}:{second:02d}" for minute in range(12) for second in (0, 0, 30)]
    lines = [row(time_, name=f"N{index}").encode() for index, time_ in enumerate(times)]
    mixed = [lines[(index * 7) % len(lines)] for index in range(len(lines))]
    folder = tmp_path / "my data [2013], 50% ü"
    out = folder / "out {a,b}*"
    folder.mkdir()
    (folder / "1 first.csv").write_bytes(b"\r\n".join(mixed[:15]))
    (folder / "2.csv.gz").write_bytes(gzip.compress(b"\n".join(mixed[15:]) + b"\n"))
    manifest = prepare([folder], out, slice_minutes=2, spark=spark)
    assert [source.rows for source in manifest.sources] == [15, 21]
    assert len(manifest.slices) == 6
    replay(out, server.url, speed=0, limit=MANY, spark=spark)
    assert rows_in(client) == by_dropoff(mixed)


def test_bad_rows_are_counted_by_reason_and_left_out(spark, tmp_path) -> None:
    good = [row("2013-01-01 00:02:00"), row("2013-01-01 00:03:00", pickup="2012-02-29 12:00:00")]
    bad = [
        "", "  ", "medallion", row("2013-01-01 00:02:00") + ",", row("2013-01-01 00:02"), row("yesterday"),
        row("2013-01-01 00:02:00", pickup=""), row("2013-02-29 00:02:00"), row("2013-01-01 25:02:00"),
        row("2013-01-01 00:02:00", pickup="2013-13-01 00:00:00"), row("2013-01-01 00:02:60"),
        row("0000-01-01 00:00:00"),
    ]  # fmt: skip
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([bad[0], good[0], *bad[1:], good[1]]) + "\n")
    manifest = prepare([file], tmp_path / "out", spark=spark)
    expected: dict[str, int] = {}
    for line in bad:  # the Spark expressions and the plain definition must agree on every kind
        verdict = judge(line)
        assert isinstance(verdict, BadRow)
        expected[verdict.value] = expected.get(verdict.value, 0) + 1
    assert manifest.bad == dict(sorted(expected.items()))
    assert set(expected) == {reason.value for reason in BadRow}
    assert manifest.rows == 2
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["bad"] == manifest.bad
    (chunk,) = read_chunks(spark, tmp_path / "out", manifest, 1)
    assert [line.decode() for line in chunk.lines] == good


def test_the_digest_names_the_rows_in_their_order(spark, client, server, tmp_path) -> None:
    time_ = "2013-01-01 00:02:00"
    files = {"a": "A1 A2", "b": "B1 B2", "c": "A2 A1"}
    for name, rows in files.items():
        (tmp_path / f"{name}.csv").write_text("".join(row(time_, name=one) + "\n" for one in rows.split()))
    first, *others = (
        prepare([tmp_path / f"{name}.csv" for name in names], tmp_path / names, spark=spark).digest
        for names in ("ab", "ba", "cb")
    )
    assert first not in others and len(set(others)) == 2
    spark.conf.set("spark.sql.files.maxPartitionBytes", 100)  # rows of a file are read by several tasks
    try:
        assert prepare([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "again", spark=spark).digest == first
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    replay(tmp_path / "ab", server.url, speed=0, limit=MANY, spark=spark)
    with pytest.raises(StreamTakenError, match="begun with other data"):
        replay(tmp_path / "ba", server.url, resume=True, spark=spark)


def test_a_foreign_file_is_refused_and_nothing_looks_prepared(spark, tmp_path) -> None:
    (tmp_path / "taxi.csv").write_text(row("2013-01-01 00:02:00") + "\n")
    (tmp_path / "stations.csv").write_text("id,name\n1,Broadway\n")
    with pytest.raises(ReplayError, match=r"stations\.csv has no row.*line 1: 2 columns, expected 17: 'id,name'"):
        prepare([tmp_path], tmp_path / "out", spark=spark)
    with pytest.raises(ReplayError, match="nothing was prepared there"):
        read_manifest(tmp_path / "out")


def test_a_cut_gzip_file_is_named_as_such(spark, tmp_path) -> None:
    whole = gzip.compress("\n".join(row("2013-01-01 00:02:00", name=str(n)) for n in range(5000)).encode())
    (tmp_path / "rows.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReplayError, match=r"Spark could not prepare the files.*gzip -t"):
        prepare([tmp_path / "rows.csv.gz"], tmp_path / "out", spark=spark)


def test_a_damaged_slice_stops_the_replay(spark, client, server, made, tmp_path) -> None:
    folder = tmp_path / "slices"
    shutil.copytree(made / "slices", folder)
    second = read_manifest(folder).slices[1]
    shutil.rmtree(folder / "slices" / f"slice={second.start_s}")
    with pytest.raises(ReplayError, match=f"slice={second.start_s}"):
        replay(folder, server.url, speed=0, limit=MANY, spark=spark)
    assert client.xlen("taxi:in") == second.first_seq - 1


def test_generated_rows_depend_on_the_seed_only(spark, made) -> None:
    settings = Settings(hours=0.5, peak_rate=120)
    counts = curve_of(settings).counts(settings.seed)
    manifest = manifest_of(settings, counts)
    one, many = (generated_rows(spark, settings, counts, manifest, pieces=n).collect() for n in (1, 5))
    assert one == many
    assert [seq for seq, *_ in one] == list(range(1, manifest.rows + 1))
    assert lines_of(made / "rows.csv.gz") == [line for _, _, line, _ in one]
    assert by_dropoff([line for _, _, line, _ in one]) == [line for _, _, line, _ in one]
    other = Settings(hours=0.5, peak_rate=120, seed=2)
    other_counts = curve_of(other).counts(2)
    assert counts != other_counts
    first_of_other = generated_rows(spark, other, other_counts, manifest_of(other, other_counts)).first()
    assert first_of_other[2] != one[0][2]


def test_generated_slices_replay_like_their_csv(spark, client, server, made, tmp_path) -> None:
    prepared = prepare([made / "rows.csv.gz"], tmp_path, spark=spark)
    generated = read_manifest(made / "slices")
    assert prepared.slices == generated.slices
    assert (prepared.first_s, prepared.last_s) == (generated.first_s, generated.last_s)
    replay(made / "slices", server.url, speed=0, limit=MANY, spark=spark)
    assert rows_in(client) == lines_of(made / "rows.csv.gz")


def test_a_dense_slice_is_read_in_pieces(spark, made) -> None:
    manifest = read_manifest(made / "slices")
    whole = list(read_chunks(spark, made / "slices", manifest, 1))
    pieces = list(read_chunks(spark, made / "slices", manifest, 150, chunk_rows=100))
    assert max(len(chunk.lines) for chunk in pieces) == 100
    assert pieces[0].first_seq == 101
    assert [line for chunk in whole for line in chunk.lines][100:] == [line for c in pieces for line in c.lines]


def test_streams_that_do_not_fit_are_refused(spark, client, server, made, tmp_path) -> None:
    folder = made / "slices"
    rows = read_manifest(folder).rows
    client.xadd("other:in", {"x": 1}, id="5-1")
    with pytest.raises(ReplayError, match="entry 5-1, which no replay wrote"):
        replay(folder, server.url, "other:in", resume=True, spark=spark)
    client.set("text", "x")
    with pytest.raises(ReplayError, match="key 'text' is no stream"):
        replay(folder, server.url, "text", spark=spark)
    client.hset("taxi:in:progress", "seq", 7)
    with pytest.raises(StreamTakenError, match="progress says that 7 rows were read"):
        replay(folder, server.url, spark=spark)
    client.delete("taxi:in:progress")
    replay(folder, server.url, speed=0, limit=MANY, from_seq=rows - 9, spark=spark)
    assert client.xrange("taxi:in", count=1)[0][0] == b"%d-0" % (rows - 9)
    assert client.xlen("taxi:in") == 11
    again = replay(folder, server.url, speed=0, limit=MANY, resume=True, spark=spark)
    assert (again.sent_now, client.xlen("taxi:in")) == (0, 11)
    generate(Settings(hours=0.1, seed=9), out=tmp_path / "b", spark=spark)
    client.hset("taxi:in:progress", "seq", 7)
    client.delete("taxi:in")  # its progress and what it was begun with are still known
    with pytest.raises(StreamTakenError, match="begun with other data"):
        replay(tmp_path / "b", server.url, speed=0, limit=MANY, resume=True, spark=spark)
    replay(folder, server.url, speed=0, limit=MANY, resume=True, spark=spark)
    with pytest.raises(StreamTakenError, match="begun with other data"):
        replay(tmp_path / "b", server.url, resume=True, spark=spark)


def test_readers_find_where_a_replay_of_later_rows_begins(spark, client, server, made) -> None:
    folder = made / "slices"
    manifest = read_manifest(folder)
    replay(folder, server.url, speed=0, limit=MANY, from_seq=manifest.rows - 9, spark=spark)
    rows = TaxiStream(client, read_settings({})).fetch(0, wait_ms=1)
    assert [row.seq for row in rows] == list(range(manifest.rows - 9, manifest.rows + 2))
    client.delete("taxi:in")
    assert starting_point(Feed(server.url, "taxi:in"), manifest, resume=False, from_seq=None) == 1
    assert client.hget("taxi:in:replay", "first") == b"1"


def test_rows_in_the_middle_are_not_left_out(client, server, made) -> None:
    manifest = read_manifest(made / "slices")
    feed = Feed(server.url, "taxi:in")
    client.xadd("taxi:in", {"r": "x", "t": 1}, id="5-0")
    for before in (5, 7):
        assert starting_point(feed, manifest, resume=True, from_seq=before + 1) == before + 1
        with pytest.raises(ReplayError, match=rf"--from-seq is {before + 2}: .* is at {before}.*Leave --from-seq out"):
            starting_point(feed, manifest, resume=True, from_seq=before + 2)
        client.delete("taxi:in")  # its progress is known
        client.hset("taxi:in:progress", "seq", 7)
    assert not client.hexists("taxi:in:replay", "first")


def test_wrong_doors_are_named_without_the_password(server, made) -> None:
    folder = made / "slices"
    with pytest.raises(RedisAwayError, match=r"redis://:\*\*\*@127\.0\.0\.1:\d+/0 cannot be reached.*Start it") as away:
        replay(folder, f"redis://:{URL_PASSWORD}@127.0.0.1:{free_port()}/0")
    with pytest.raises(ClusterRefusedError, match="refuses the password") as wrong:
        replay(folder, f"redis://:guess@127.0.0.1:{server.port}/0")
    with pytest.raises(ClusterRefusedError, match="wants a password and none was given"):
        replay(folder, f"redis://127.0.0.1:{server.port}/0")
    for error in (away, wrong):
        assert "sesame" not in str(error.value)
        assert "guess" not in str(error.value)
    with pytest.raises(ReplayError, match="--redis"):
        Feed("http://localhost", "taxi:in")


def test_a_replay_that_was_killed_then_stopped_goes_on_without_gap_or_repeat(spark, client, server, made) -> None:
    killed = start_replay(made / "slices", server, "--speed", "300")
    wait_for_rows(client, 300, killed)
    killed.kill()
    killed.communicate()
    arrived = client.xlen("taxi:in")
    assert not left_of_session(killed.pid), "the killed replay left processes behind"
    with pytest.raises(StreamTakenError, match=f"holds entries up to {arrived} already. Add --resume"):
        replay(made / "slices", server.url, spark=spark)

    stopped = start_replay(made / "slices", server, "--resume", "--speed", "300")
    wait_for_rows(client, arrived + 200, stopped)
    os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    lines, errors = stopped.communicate(timeout=30)
    assert (stopped.returncode, errors) == (130, "stopped.\n")
    reports = [json.loads(line) for line in lines.splitlines()]
    assert [report["action"] for report in reports[:2]] == ["replay_starting_spark", "replay_sending"]
    assert not left_of_session(stopped.pid)
    assert not (made / "slices" / ".spark").exists()

    last = replay(made / "slices", server.url, speed=0, limit=MANY, resume=True, spark=spark)
    rows = rows_in(client)
    assert rows == lines_of(made / "rows.csv.gz")
    assert arrived + 200 <= len(rows) - last.sent_now < len(rows) == last.sent


def test_a_termination_while_spark_starts_leaves_no_process(client, server, made) -> None:
    running = start_replay(made / "slices", server)
    while not (made / "slices" / ".spark" / str(running.pid) / "spark.log").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    running.terminate()
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (143, "stopped.\n")
    assert not left_of_session(running.pid)
    assert client.xlen("taxi:in") == 0


def start_replay(folder: Path, server: RedisServer, *options: str) -> subprocess.Popen:
    """`leeward replay run` in a session of its own."""
    command = (
        sys.executable,
        "-c",
        COMMAND,
        "replay",
        "run",
        str(folder),
        "--redis",
        server.address,
        "--secrets",
        str(server.secrets_file),
        "--quiet",
        *options,
    )
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_rows(client: redis.Redis, count: int, running: subprocess.Popen) -> None:
    while client.xlen("taxi:in") < count:
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)


def left_of_session(session: int) -> list[str]:
    """Processes of a session that are still there after a moment of grace."""
    for _ in range(100):
        left = subprocess.run(
            ["ps", "-s", str(session), "-o", "pid=,stat=,args="], capture_output=True, text=True
        ).stdout
        alive = [line for line in left.splitlines() if line.split()[1][0] != "Z"]
        if not alive:
            return []
        time.sleep(0.1)
    return alive


def test_it_never_runs_ahead_of_the_reader(spark, client, server, made) -> None:
    limit, ahead, stopped = 40, [], threading.Event()

    def read() -> None:
        own = redis.Redis(port=server.port, password=PASSWORD)
        done = 0
        while own.xlen("taxi:in") < limit and not stopped.wait(0.01):
            pass
        time.sleep(0.6)  # longer than a wait that is not worth a report
        while not stopped.is_set():
            last = own.xlen("taxi:in")
            ahead.append(last - done)
            done = min(last, done + 25)
            own.hset("taxi:in:progress", "seq", done)
            time.sleep(0.002)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        states = set()
        replay(
            made / "slices",
            server.url,
            speed=0,
            limit=limit,
            spark=spark,
            on_progress=lambda p: states.add(p.state),
        )
    finally:
        stopped.set()
        reader.join()
    assert max(ahead) <= limit + 1  # the reader looks before it writes; plus the end entry
    assert State.WAITING in states
    assert rows_in(client) == lines_of(made / "rows.csv.gz")


class Trouble:
    """Listens to a replay; once 100 rows are in it calls `begin`, and `end` a little later."""

    def __init__(self, begin: Callable[[], object], end: Callable[[], object], lasting_s: float) -> None:
        self.begin = begin
        self.timer = threading.Timer(lasting_s, end)
        self.reports: list[Progress] = []

    def hear(self, progress: Progress) -> None:
        if progress.sent >= 100 and not self.timer.is_alive() and not self.timer.finished.is_set():
            self.begin()
            self.timer.start()
        self.reports.append(progress)


def test_redis_restarted_in_the_middle_loses_and_repeats_nothing(spark, client, server, made) -> None:
    trouble = Trouble(server.stop, server.start, 0.5)
    replay(made / "slices", server.url, speed=600, limit=MANY, spark=spark, on_progress=trouble.hear)
    assert State.RECONNECTING in {report.state for report in trouble.reports}
    assert rows_in(client) == lines_of(made / "rows.csv.gz")


@pytest.mark.parametrize("setting", ["maxmemory", "min-replicas-to-write"])
def test_a_redis_that_cannot_write_for_a_while_gets_everything(spark, client, server, made, setting) -> None:
    trouble = Trouble(lambda: client.config_set(setting, 1), lambda: client.config_set(setting, 0), 0.7)
    try:
        replay(made / "slices", server.url, speed=600, limit=MANY, spark=spark, on_progress=trouble.hear)
    finally:
        client.config_set(setting, 0)
    assert any("cannot write" in report.note for report in trouble.reports)
    assert rows_in(client) == lines_of(made / "rows.csv.gz")


def test_data_time_paces_the_stream(spark, client, server, made) -> None:
    began = time.monotonic()
    replay(made / "slices", server.url, speed=600, limit=MANY, spark=spark)
    assert time.monotonic() - began > 2.9  # thirty minutes of data at 600 times real time
    sent = [float(fields[b"w"]) for _, fields in client.xrange("taxi:in")[:-1]]
    times = [epoch_s(line.decode().split(",")[3]) for line in lines_of(made / "rows.csv.gz")]
    for index in range(0, len(sent), 100):
        due_s = (times[index] - times[0]) / 600
        assert sent[index] - sent[0] > due_s - 0.01  # never early
