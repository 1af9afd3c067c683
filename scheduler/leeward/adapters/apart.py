"""Calls a function in a process of its own: it ends in time whatever it does, and others go before it.

`python -m leeward.adapters.apart` reads one call from standard input and writes its end to standard output, both
pickled; only the process that started it writes there. The function is named as `module:function`, so that this process
does not import it. Its arguments and its value are values.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from leeward.core import errors
from leeward.core.errors import LeewardError, NotReadyError

#: Between two looks at whether the call is still wanted, s.
LOOK_S = 0.5
#: Niceness of the process.
NICE = 10
#: Processors' time that a call may take for each second of its limit: solvers have threads.
PROCESSORS = 8
#: How a call ends.
VALUE, RAISED = "value", "raised"

_log = logging.getLogger(__name__)


def call_apart(
    function: str, arguments: tuple[Any, ...], options: Mapping[str, Any], *, limit_s: float,
    over: Callable[[], bool] = lambda: False,
) -> Any:  # fmt: skip
    """The value of `module:function`. `over`: whether nobody waits for it any more.

    Raises what the function raises, as LeewardError; NotReadyError if it takes longer than `limit_s`, or is over.
    """
    call = pickle.dumps((function, arguments, dict(options), limit_s))
    process = subprocess.Popen(
        [sys.executable, "-m", "leeward.adapters.apart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        told, said = _told(process, call, limit_s, over)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        _log.error("%s failed: %s", function, said.decode(errors="replace")[-4000:])
        raise RuntimeError(f"{function} ended with code {process.returncode}")
    ending, value = pickle.loads(told)  # of a process that this one has started
    if ending == RAISED:
        kind, message, remedy = value
        raise getattr(errors, kind, LeewardError)(message, remedy=remedy)
    return value


def _told(
    process: subprocess.Popen[bytes], call: bytes, limit_s: float, over: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Its standard output and error at its end."""
    until = time.monotonic() + limit_s
    waiting: bytes | None = call
    while True:
        try:
            return process.communicate(waiting, timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            waiting = None  # it is sent on
        if over():
            raise NotReadyError("the service ends.", remedy="Ask again when it has started.")
        if time.monotonic() >= until:
            raise NotReadyError(
                f"no answer after {limit_s:g} s of computing.", remedy="Allow it more time, or use the command."
            )


def main() -> None:
    """One call."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # a solver may print
        function, arguments, options, limit_s = pickle.load(sys.stdin.buffer)
        _step_back(limit_s)
        module, _, name = function.partition(":")
        try:
            end: tuple[str, object] = VALUE, getattr(import_module(module), name)(*arguments, **options)
        except LeewardError as error:  # its class may be one that the other process has not imported
            end = RAISED, (type(error).__name__, error.message, error.remedy)
        pickle.dump(end, out)


def _step_back(limit_s: float) -> None:
    """Others go before this process, for processors and for memory; it ends by itself if nobody ends it."""
    os.nice(NICE)
    seconds = max(1, round(limit_s * PROCESSORS))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # of Linux
        file.write("1000")


if __name__ == "__main__":
    main()
