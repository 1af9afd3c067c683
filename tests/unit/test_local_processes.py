"""Processes are found by their mark and by their start, listened ports by their owner."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from leeward.local import processes
from leeward.local.errors import PortsTakenError
from leeward.local.preflight import check_free
from leeward.local.processes import Process
from tests.helpers.servers import port_block

MARK = "LEEWARD_TEST_MARK"


@pytest.fixture
def mark(tmp_path) -> Iterator[str]:
    yield str(tmp_path)
    processes.end_all(lambda: processes.marked(MARK, str(tmp_path)), grace_s=0)


def start(mark: str, program: str) -> subprocess.Popen[str]:
    """A marked Python process that has printed "ready"."""
    child = subprocess.Popen(
        [sys.executable, "-c", "print('ready', flush=True)\n" + program],
        env=os.environ | {MARK: mark},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    return child


def test_marked_processes_are_found_with_their_children_and_no_others(mark: str):
    sleeper = "import time; time.sleep(60)"
    ours = start(mark, f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{sleeper}'])")
    other = start(mark + "-other", sleeper)
    until = time.monotonic() + 10
    while len(found := processes.marked(MARK, mark)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    assert ours.pid in {p.pid for p in found}
    assert len(found) == 2
    assert processes.end_all(lambda: processes.marked(MARK, mark), grace_s=5) == 2
    assert processes.marked(MARK, mark) == set()
    assert other.poll() is None
    other.kill()
    other.communicate()
    ours.communicate()


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(mark: str):
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('set', flush=True)"
    child = start(mark, program + "\ntime.sleep(60)")
    assert child.stdout.readline() == "set\n"
    begin = time.monotonic()
    assert processes.end_all(lambda: processes.marked(MARK, mark), grace_s=0.5) == 1
    assert 0.5 <= time.monotonic() - begin < 5
    child.communicate()


def test_a_reused_pid_is_not_the_same_process():
    me = processes.process_of(os.getpid())
    assert me is not None and processes.is_alive(me)
    assert not processes.is_alive(Process(me.pid, me.started - 1))


def test_a_zombie_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = Process(child.pid, 0)
    until = time.monotonic() + 10
    while processes.process_of(child.pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert (processes.PROC / str(child.pid)).exists(), "not collected yet: still in the process table"
    assert processes.process_of(process.pid) is None
    child.wait()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_taken_port_is_named_with_its_owner(family: socket.AddressFamily):
    try:
        server = socket.create_server(("", port_block()), family=family)
    except OSError as error:
        pytest.skip(f"needs hardware: no address family {family.name} here ({error})")
    with server:
        port = server.getsockname()[1]
        assert processes.listeners({port}) == {port: os.getpid()}
        with pytest.raises(PortsTakenError, match=rf"port {port} \(nimbus\) is taken by pid {os.getpid()} "):
            check_free({port: "nimbus"})
    assert processes.listeners({port}) == {}


def test_memory_is_a_share_of_what_the_process_maps():
    assert 1_000_000 < processes.memory_bytes(os.getpid()) < 10_000_000_000


def test_the_start_of_a_process_is_known_to_hundredths_of_a_second(mark):
    before = time.time()
    child = start(mark, "input()")
    assert before - 0.05 <= processes.started_s(child.pid) <= time.time() + 0.05
