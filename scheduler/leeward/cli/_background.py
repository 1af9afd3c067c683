"""`leeward` commands that run beside this process, and are ended with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
