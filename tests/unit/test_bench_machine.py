"""What benchmarks do to the machine is put back, whatever happens."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tests.bench.machine import add_halt_poll_option, facts, halt_polling, stolen_s


def test_processors_poll_only_while_it_is_measured(tmp_path: Path) -> None:
    setting = tmp_path / "guest_halt_poll_ns"
    setting.write_text("0\n")
    with pytest.raises(RuntimeError), halt_polling(1000, setting):
        assert setting.read_text() == "1000000"
        raise RuntimeError
    assert setting.read_text() == "0\n"


def test_without_the_option_nothing_is_touched(tmp_path: Path) -> None:
    with halt_polling(None, tmp_path / "not there"):
        pass


@pytest.mark.parametrize("text", ["-1", "a while", "10001", "1.5"])
def test_a_time_that_makes_no_sense_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_halt_poll_option(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([f"--halt-poll-us={text}"])
    assert "whole number of microseconds" in capsys.readouterr().err


def test_a_machine_without_the_setting_says_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.bench.machine.HALT_POLL", tmp_path / "not there")
    parser = argparse.ArgumentParser()
    add_halt_poll_option(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--halt-poll-us=1000"])
    assert "wants root" in capsys.readouterr().err
    assert facts()["halt_poll_us"] is None


def test_what_the_host_took_is_the_eighth_of_the_kernel_s_times(tmp_path: Path) -> None:
    """user nice system idle iowait irq softirq steal guest guest_nice, in ticks."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 400 9 10\n")
    assert stolen_s(stat) == 800 / os.sysconf("SC_CLK_TCK")
