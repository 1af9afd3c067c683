"""Traces as a collector gets them: a real receiver over HTTP, which reads the official messages."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from leeward.adapters.otlp import Traces
from leeward.cli._tracing import traced
from leeward.core.errors import ConfigError
from leeward.sim.memory import ListSink, ManualClock
from tests.helpers.otlp_receiver import LONG_S, Receiver, attributes, received

ENDED = {
    "topology": "taxi", "kind": "handover", "epoch": 7, "ending": "done", "result": "done", "reason": "work is slow",
    "pause_s": 0.05, "phases": {"ahead_s": 1.5, "handover_s": 0.5}, "bytes_exported": 2048,
    "changes": [{"component": "work", "kind": "move", "before": {"n1": 1}, "after": {"n2": 1}}],
}  # fmt: skip


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def test_a_reconfiguration_is_a_trace_with_its_phases(receiver):
    traces = Traces(receiver.url, ManualClock(now=1_000_000.0))
    traces.emit("plan_made", {"topology": "taxi"})
    traces.emit("reconfiguration_ended", ENDED)
    traces.close()
    whole, ahead, handover = received(receiver, 3)
    assert [one.name for one in (whole, ahead, handover)] == ["reconfiguration", "ahead", "handover"]
    told = attributes(whole)
    assert (told["leeward.topology"], told["leeward.kind"], told["leeward.result"]) == ("taxi", "handover", "done")
    assert told["leeward.epoch"] == 7 and whole.status.code == 0
    for one in (ahead, handover):
        assert one.parent_span_id == whole.span_id and one.trace_id == whole.trace_id
    edges = [whole.start_time_unix_nano, ahead.start_time_unix_nano, ahead.end_time_unix_nano,
             handover.start_time_unix_nano, handover.end_time_unix_nano, whole.end_time_unix_nano]  # fmt: skip
    assert [edge - 10**15 for edge in edges] == [-2 * 10**9, -2 * 10**9, -(10**9) // 2, -(10**9) // 2, 0, 0]


def test_one_that_did_not_come_about_is_an_error_with_its_reason(receiver):
    with traced(receiver.url, ListSink()) as sink:
        sink.emit("reconfiguration_ended", ENDED | {"ending": "aborted", "result": "task 3 was silent", "phases": {}})
    (whole,) = received(receiver, 1)
    assert whole.status.code == 2 and whole.status.message == "task 3 was silent"
    assert attributes(whole)["leeward.result"] == "aborted"


def test_a_collector_that_is_away_holds_nothing_up(receiver):
    receiver.close()
    began = time.monotonic()
    traces = Traces(receiver.url, ManualClock())
    for _ in range(5000):
        traces.emit("reconfiguration_ended", ENDED)
    assert time.monotonic() - began < LONG_S, "the services' threads do not wait for it"
    traces.close()
    assert time.monotonic() - began < 2 * LONG_S


@pytest.mark.parametrize("address", ["", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ConfigError, match="--otlp"), traced(address, ListSink()):
        pass


def test_without_the_option_nothing_of_it_is_imported_and_events_pass(tmp_path):
    program = (
        "import sys\nfrom leeward.cli._tracing import traced\nfrom leeward.sim.memory import ListSink\n"
        "sink = ListSink()\nwith traced(None, sink) as given:\n    assert given is sink\n"
        "import leeward.cli.serve\nprint([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
