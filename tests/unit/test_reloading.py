"""A file of settings that changes while it is served: good ones come into force, wrong ones do not, and all is told."""

from __future__ import annotations

import threading

import pytest

from leeward.adapters.reloading import Reloading
from leeward.core.errors import ConfigError
from leeward.sim.memory import ListSink

LONG_S = 20.0


class File:
    """Its text, and how it is read."""

    def __init__(self, text: str) -> None:
        self.now: str | None = text

    def text(self) -> str:
        if self.now is None:
            raise ConfigError("the file does not exist.", remedy="Write it.")
        return self.now

    def read(self, text: str) -> str:
        if text.startswith("wrong"):
            raise ConfigError(f"{text!r} is wrong.", remedy="Mend it.")
        if text.startswith("broken"):
            raise SyntaxError("of a module that it names")
        return text.upper()


@pytest.fixture
def file():
    return File("a")


@pytest.fixture
def sink():
    return ListSink()


def reloading(file: File, sink: ListSink) -> Reloading[str]:
    return Reloading("A", seen="a", text=file.text, read=file.read, sink=sink, look_s=0.005)


def test_it_serves_anew_with_each_good_change_until_it_is_stopped(file, sink):
    stop, served = threading.Event(), []

    def serve(settings: str, over: threading.Event) -> None:
        served.append(settings)
        file.now = {"A": "b", "B": "c"}.get(settings, file.now)
        if settings == "C":
            stop.set()
        assert over.wait(LONG_S)

    reloading(file, sink).run(serve, stop)
    assert served == ["A", "B", "C"] and [name for name, _ in sink.events] == ["settings_reloaded"] * 2


def test_it_ends_when_the_service_ends_by_itself(file, sink):
    served = []
    reloading(file, sink).run(lambda settings, _: served.append(settings), threading.Event())
    assert served == ["A"] and not sink.events


def test_a_fault_of_the_service_ends_it_too(file, sink):
    def serve(_settings: str, _over: threading.Event) -> None:
        raise ConfigError("the topology does not run.", remedy="Submit it.")

    with pytest.raises(ConfigError, match="does not run"):
        reloading(file, sink).run(serve, threading.Event())


def test_a_module_that_cannot_be_loaded_is_refused_and_the_next_change_is_still_read(file, sink):
    one = reloading(file, sink)
    file.now = "broken"
    assert [one.look() for _ in range(2)] == [False] * 2
    assert sink.of("settings_refused") == [{"why": "SyntaxError: of a module that it names"}]
    file.now = "b"
    assert one.look()


def test_wrong_settings_are_refused_once_and_the_last_good_ones_stay(file, sink):
    one = reloading(file, sink)
    file.now = "wrong 1"
    assert [one.look() for _ in range(3)] == [False] * 3
    file.now = None
    assert [one.look() for _ in range(3)] == [False] * 3
    assert [(name, "wrong" in fields["why"]) for name, fields in sink.events] == [
        ("settings_refused", True), ("settings_refused", False),
    ]  # fmt: skip
    file.now = "a"
    assert not one.look() and sink.events[-1] == ("settings_reloaded", {"changed": False}), "the file is there again"
    file.now = "b"
    assert one.look() and not one.look()


def test_a_change_that_was_made_while_the_first_settings_were_prepared_is_read(file, sink):
    file.now = "b"
    one = Reloading("A", seen="a", text=file.text, read=file.read, sink=sink)
    assert one.look() and sink.of("settings_reloaded") == [{"changed": True}]


def test_a_text_of_the_same_settings_begins_nothing_anew(file, sink):
    """The service would forget the rates of the day, and what the policy remembers."""
    one = Reloading("A", seen="a", text=file.text, read=lambda text: text.partition("#")[0].strip().upper(), sink=sink)
    file.now = "a  # a comment"
    assert not one.look() and sink.of("settings_reloaded") == [{"changed": False}]


def test_a_file_that_is_touched_changes_nothing(file, sink):
    one = reloading(file, sink)
    file.now = str(file.text())
    assert not one.look() and not sink.events
