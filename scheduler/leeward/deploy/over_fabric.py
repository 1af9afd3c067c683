"""A transport over the Fabric 1 API that streamparse ships.

Host keys have to be known: a rollout carries passwords, and programs that root will run.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import shlex
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.deploy.errors import HostError, LostHostError
from leeward.deploy.inventory import Host, Inventory

_CONNECT_S = 10
_LOST_MS = 20_000
_BUFFER = 65536


class _AbortedError(Exception):
    """Fabric's abort, which else ends the process."""


class OverFabric:
    """Runs scripts, sends files and forwards ports by ssh."""

    def __init__(self, inventory: Inventory) -> None:
        self._sudo = inventory.sudo

    def run(self, host: Host, script: str, *, patience_s: float = 60.0) -> str:
        """Run a script with `sh`; its output. Raises HostError if it fails, or takes longer."""
        from fabric.api import run
        from fabric.exceptions import CommandTimeout

        prefix = "sudo -n " if self._sudo else ""
        try:
            with self._at(host):
                done = run(
                    f"{prefix}sh -c {shlex.quote(script)}", shell=False, pty=False, combine_stderr=False,
                    warn_only=True, timeout=patience_s,
                )  # fmt: skip
        except CommandTimeout:  # no error of the network to Fabric
            _forget(host)
            raise HostError(f"host {host.name}: its command has not ended in {patience_s:g} s.") from None
        if done.return_code != 0:
            said = (str(done.stderr) or str(done)).strip().splitlines()
            raise HostError(f"host {host.name}: {' / '.join(said[-4:]) or f'exit code {done.return_code}'}")
        return str(done)

    def put(self, host: Host, content: bytes | Path, path: str) -> None:
        """Write the content into a file that is there already and keeps its mode. Raises HostError."""
        if not self._sudo:
            self._send(host, content, path)
            return
        # not by Fabric's use_sudo, which leaves the file readable for a moment
        private = self._as_user(host, "mktemp -d")
        try:
            self._send(host, content, f"{private}/file")
            self.run(host, f"cat {shlex.quote(private)}/file > {shlex.quote(path)}", patience_s=600.0)
        finally:
            self._as_user(host, f"rm -rf {shlex.quote(private)}")

    def _as_user(self, host: Host, script: str) -> str:
        from fabric.api import run

        with self._at(host):
            return str(run(script, shell=False, pty=False))

    def _send(self, host: Host, content: bytes | Path, path: str) -> None:
        from fabric.api import put

        source = str(content) if isinstance(content, Path) else io.BytesIO(content)
        try:
            with self._at(host):
                put(source, path, use_glob=False)
        except LostHostError as error:
            raise HostError(f"{error.message} {path} was not written{self._disk(host, path)}.") from None

    def _disk(self, host: Host, path: str) -> str:
        """sftp says no more than "Failure" when a disk is full."""
        with contextlib.suppress(HostError):
            free = self.run(host, f"df -Pk {shlex.quote(os.path.dirname(path))} | awk 'NR == 2 {{ print $4, $NF }}'")
            kilobytes, _, mount = free.partition(" ")
            return f"; {mount} has {int(kilobytes) >> 10} MiB free"
        return ""

    @contextmanager
    def forward(self, host: Host, port: int, to: str = "localhost") -> Iterator[tuple[str, int]]:
        """An address on this machine that leads to the port, as the host reaches it under the name `to`."""
        from fabric.state import connections

        with self._at(host):
            transport = connections[host.address].get_transport()
        with _Forward(transport, (to, port)) as server:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            try:
                yield "127.0.0.1", server.server_address[1]
            finally:
                server.shutdown()

    @contextmanager
    def _at(self, host: Host) -> Iterator[None]:
        from fabric.api import env, hide, settings
        from fabric.exceptions import NetworkError
        from fabric.network import ssh

        try:
            with settings(
                hide("everything", "aborts"), host_string=host.address, abort_exception=_AbortedError,
                abort_on_prompts=True, reject_unknown_hosts=True, disable_known_hosts=False, warn_only=False,
                use_ssh_config=os.path.isfile(os.path.expanduser(env.ssh_config_path)),
                timeout=_CONNECT_S, connection_attempts=1, keepalive=15,
            ):  # fmt: skip
                _notice_loss(host)
                yield
        except (NetworkError, _AbortedError, ssh.SSHException, EOFError, OSError) as error:
            _forget(host)
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise LostHostError(f"host {host.name} ({host.address}): {first.rstrip('.')}.") from None


def _notice_loss(host: Host) -> None:
    """Connect, and let the system end the connection soon after the host has gone: the default is a quarter of an hour.

    Fabric's `keepalive` sends something every 15 s.
    """
    from fabric.state import connections

    connection = connections[host.address].get_transport().sock
    if hasattr(connection, "setsockopt"):  # not a proxy command of ssh's configuration
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _LOST_MS)


def _forget(host: Host) -> None:
    """A connection that failed is made anew next time."""
    from fabric.state import connections

    with contextlib.suppress(Exception):
        if host.address in connections:
            connections[host.address].close()
            del connections[host.address]


class _Forward(socketserver.ThreadingTCPServer):
    """Listens on loopback; each connection becomes a channel of ssh."""

    daemon_threads = True

    def __init__(self, transport: Any, target: tuple[str, int]) -> None:
        self.transport, self.target = transport, target
        super().__init__(("127.0.0.1", 0), _Pump)


class _Pump(socketserver.BaseRequestHandler):
    """Carries bytes both ways until one end hangs up."""

    def handle(self) -> None:
        """Of one connection. A port on which nobody listens looks like one that hangs up at once."""
        assert isinstance(self.server, _Forward)
        try:
            channel = self.server.transport.open_channel("direct-tcpip", self.server.target, ("127.0.0.1", 0))
        except Exception:
            return
        try:
            ends = {self.request: channel, channel: self.request}
            while True:
                for end in select.select(list(ends), [], [], 60.0)[0]:
                    data = end.recv(_BUFFER)
                    if not data:
                        return
                    ends[end].sendall(data)
        except OSError:
            return
        finally:
            channel.close()
