"""`leeward` commands and calls that run beside this process, and are ended with it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


def leeward_command(arguments: Sequence[str]) -> list[str]:
    """The command line of a `leeward` command of this installation."""
    return [str(Path(sys.executable).with_name("leeward")), *arguments]


@contextmanager
def background(command: Sequence[str], log: Path) -> Iterator[int]:
    """A command in a process group of its own, by its id; ended with all its children after the block."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process.pid
    finally:
        for sign, patience_s in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, sign)
                process.wait(patience_s)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.poll()


@contextmanager
def forked(call: Callable[[], None], log: Path) -> Iterator[int]:
    """A call in a forked process, in a group of its own, by its id; ended with all its children after the block.

    It has all that this process has imported, so it begins at once. No event loop may run here.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # else each child's collections would copy all pages
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler)
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            for stream in (1, 2):
                os.dup2(file, stream)
            call()
            code = 0
        except KeyboardInterrupt:
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    try:
        yield pid
    finally:
        _end(pid)


def _end(pid: int) -> None:
    for sign, patience_s in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError):
            os.killpg(pid, sign)
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    time.sleep(0.02)
                    continue
            return
