"""The library that keeps servers to a loopback address, in a real process; and what is said where it cannot be made."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from leeward.local import loopback, processes
from leeward.local.errors import NotInstalledError
from leeward.local.places import kept

BIND = """
import socket, sys
family, kind, address = socket.AddressFamily[sys.argv[1]], socket.SocketKind[sys.argv[2]], sys.argv[3]
server = socket.socket(family, kind)
if family == socket.AF_INET6:
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(sys.argv[4]))
server.bind((address, 0))
print(server.getsockname()[0])
"""


def bound(*words: str, listen_on: str = "127.0.0.11") -> str:
    environment = loopback.environment(loopback.library(kept()), listen_on, os.environ)
    command = [sys.executable, "-c", BIND, *words]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (("AF_INET", "SOCK_STREAM", "0.0.0.0"), "127.0.0.11"),
        (("AF_INET6", "SOCK_STREAM", "::", "0"), "::ffff:127.0.0.11"),
        (("AF_INET6", "SOCK_STREAM", "::", "1"), "::1"),
        (("AF_INET", "SOCK_STREAM", "127.0.0.3"), "127.0.0.3"),
        (("AF_INET6", "SOCK_STREAM", "::1", "1"), "::1"),
        (("AF_INET", "SOCK_DGRAM", "0.0.0.0"), "0.0.0.0"),
    ],
)
def test_servers_on_every_address_come_to_the_one_given(words: tuple[str, ...], address: str):
    assert bound(*words) == address


def test_without_a_good_address_there_is_no_server():
    assert "Cannot assign requested address" in bound("AF_INET", "SOCK_STREAM", "0.0.0.0", listen_on="localhost")


def test_other_preloaded_libraries_stay():
    made = loopback.environment(Path("/ours.so"), "127.0.0.1", {"LD_PRELOAD": "/theirs.so"})
    assert made == {"LD_PRELOAD": "/ours.so:/theirs.so", "LEEWARD_LISTEN": "127.0.0.1"}


def test_without_a_compiler_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalledError, match=r"neither cc nor gcc .*make setup.*libc6-dev.*--any-address"):
        loopback.library(tmp_path)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'stdlib.h: No such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalledError, match=r"cc failed: stdlib\.h: No such file.*libc6-dev"):
        loopback.library(tmp_path)


def test_a_path_that_cannot_be_preloaded_is_refused(tmp_path: Path):
    with pytest.raises(NotInstalledError, match=r"has a blank or a colon.*Move that folder"):
        loopback.library(tmp_path / "my checkout")


def test_listening_sockets_of_a_process_are_seen_with_their_address():
    with socket.create_server(("127.0.0.5", 0)) as four, socket.create_server(("::", 0), family=socket.AF_INET6) as six:
        seen = processes.listening(os.getpid())
        assert (ipaddress.ip_address("127.0.0.5"), four.getsockname()[1]) in seen
        assert (ipaddress.ip_address("::"), six.getsockname()[1]) in seen
