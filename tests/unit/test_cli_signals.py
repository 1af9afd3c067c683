"""A command that is told to end does so in order, and without a call that waits for ever."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from leeward.cli._signals import signals

ORDERLY_S = 0.3


def told_after(seconds: float, *numbers: int) -> None:
    """This process gets these signals."""

    def tell() -> None:
        for number in numbers:
            time.sleep(seconds)
            os.kill(os.getpid(), number)

    threading.Thread(target=tell, daemon=True).start()


@pytest.mark.parametrize(("number", "interrupts"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_work_that_looks_at_the_wish_ends_in_order(number: int, interrupts: bool, capsys):
    before = signal.getsignal(number)
    with signals(ORDERLY_S) as (stop, interrupted):
        told_after(0.05, number)
        assert stop.wait(10)
    assert interrupted.is_set() == interrupts and signal.getsignal(number) is before
    time.sleep(2 * ORDERLY_S)  # no alarm comes after the end
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_that_waits_for_ever_ends_with_the_process(number: int, capsys):
    left, over = [], threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        over.set()

    with signals(ORDERLY_S, leave) as (stop, _):
        told_after(0.05, number)
        assert over.wait(10)
    assert stop.is_set() and left == [128 + number]
    assert "a server that did not answer within 0.3 s" in capsys.readouterr().err


def test_a_second_ctrl_c_ends_at_once():
    with pytest.raises(KeyboardInterrupt), signals(60.0):
        told_after(0.05, signal.SIGINT, signal.SIGINT)
        threading.Event().wait()


def test_a_fault_of_the_work_is_not_hidden():
    with pytest.raises(ValueError, match="of the work"), signals(ORDERLY_S):
        raise ValueError("of the work")
