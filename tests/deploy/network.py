"""Six machines as network namespaces on one bridge, each with its own /opt, host name and sshd.

    operator  has the bridge, an ssh key and the known host keys; `fab` and `sparse` run there
    nimbus, worker1, worker2, worker3, datastore   are reached from it by ssh alone

The bridge is in the operator's namespace, so that nothing leads to this machine's own network or out of it. Addresses
are of 198.18.0.0/15, which is reserved for tests of networks.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from leeward.local import processes

OPERATOR = "operator"
MACHINES = ("nimbus", "worker1", "worker2", "worker3", "datastore")
SUBNET = "198.18.250"
SSHD = "/usr/sbin/sshd"
PORT = 22
#: root's on each of them; /root itself may hold the Python that runs all this
HOME = "/opt/root"


def sh(*command: object, check: bool = True) -> str:
    """A command to its end; its output."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0 or not check, f"{command}: {done.stderr}"
    return done.stdout


class Machines:
    """The six of them. As a context manager: up inside the block; nothing is left after it."""

    def __init__(self, folder: Path, path: str, *, prefix: str = "lwd") -> None:
        """`path`: the PATH of all sessions; `prefix`: of the namespaces' names."""
        self.folder, self.path = folder, path
        self.prefix = f"{prefix}{os.getpid()}-"
        self.addresses = {name: f"{SUBNET}.{10 + at}" for at, name in enumerate(MACHINES)} | {OPERATOR: f"{SUBNET}.1"}
        self._sshds: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Machines:
        try:
            self._make_network()
            self._make_keys()
            for name in MACHINES:
                self._start_sshd(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        processes.end_all(self._inside, grace_s=10)
        for sshd in self._sshds:
            sshd.wait()
        for name in (*MACHINES, OPERATOR):
            sh("ip", "netns", "del", self.namespace(name), check=False)

    def namespace(self, name: str) -> str:
        """The namespace of a machine."""
        return self.prefix + name

    def opt(self, name: str) -> Path:
        """A machine's /opt, as this machine sees it."""
        return self.folder / name / "opt"

    def command(self, name: str, command: Sequence[object]) -> list[str]:
        """The command line that runs a command on a machine."""
        script = (
            f"mount --bind {self.folder}/hosts /etc/hosts && mount --bind {self.folder}/passwd /etc/passwd"
            f" && mount --bind {self.opt(name)} /opt && mount -t tmpfs none /run && mkdir /run/sshd"
            f' && hostname {name} && exec "$@"'
        )
        enter = ["nsenter", f"--net=/run/netns/{self.namespace(name)}", "unshare", "--mount", "--uts"]
        return [*enter, "sh", "-c", script, "sh", *map(str, command)]

    def run(
        self, name: str, *command: object, cwd: Path | None = None, more: Mapping[str, str] | None = None,
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """A command on a machine, to its end."""
        environment = {"PATH": self.path, "HOME": HOME, "LANG": "C.UTF-8", **(more or {})}
        return subprocess.run(
            self.command(name, command), cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=timeout_s,
        )  # fmt: skip

    def shell(self, name: str, script: str) -> str:
        """A script on a machine by way of ssh from the operator. Raises AssertionError if it fails."""
        done = self.run(OPERATOR, "ssh", name, script)
        assert done.returncode == 0, f"{name}: {script}: {done.stdout}"
        return done.stdout

    def pull_cable(self, name: str, *, plugged: bool) -> None:
        """Disconnect a machine from the bridge, or connect it again."""
        sh("ip", "-n", self.namespace(OPERATOR), "link", "set", f"v-{name}", "up" if plugged else "down")

    def plug_in(self, name: str) -> None:
        """Mend the machine's own end, after a command there has shut it."""
        sh("ip", "-n", self.namespace(name), "link", "set", "eth0", "up")

    def _inside(self) -> set[processes.Process]:
        found = set()
        for name in (*MACHINES, OPERATOR):
            for pid in sh("ip", "netns", "pids", self.namespace(name), check=False).split():
                if (process := processes.process_of(int(pid))) is not None:
                    found.add(process)
        return found

    def _make_network(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        users = Path("/etc/passwd").read_text()
        (self.folder / "passwd").write_text(re.sub(r"(?m)^(root:(?:[^:]*:){4})[^:]*", rf"\1{HOME}", users))
        for name in (*MACHINES, OPERATOR):
            self.opt(name).mkdir(parents=True)
            (self.opt(name) / "root" / ".ssh").mkdir(parents=True, mode=0o700)
            sh("ip", "netns", "add", self.namespace(name))
            sh("ip", "-n", self.namespace(name), "link", "set", "lo", "up")
        ip = ("ip", "-n", self.namespace(OPERATOR))
        sh(*ip, "link", "add", "bridge", "type", "bridge")
        sh(*ip, "addr", "add", f"{self.addresses[OPERATOR]}/24", "dev", "bridge")
        sh(*ip, "link", "set", "bridge", "up")
        for name in MACHINES:
            there = self.namespace(name)
            sh(*ip, "link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", there)
            sh(*ip, "link", "set", f"v-{name}", "master", "bridge", "up")
            sh("ip", "-n", there, "addr", "add", f"{self.addresses[name]}/24", "dev", "eth0")
            sh("ip", "-n", there, "link", "set", "eth0", "up")

    def _make_keys(self) -> None:
        """The operator's key, and a host key for each machine, which the operator knows."""
        ssh = self.opt(OPERATOR) / "root" / ".ssh"
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / "id_ed25519")
        known = []
        for name in MACHINES:
            key = self.folder / name / "host_key"
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
            public = key.with_suffix(".pub").read_text().split()
            known.append(f"{name},{self.addresses[name]} {public[0]} {public[1]}\n")
        (ssh / "known_hosts").write_text("".join(known))
        (ssh / "config").write_text(f"Host *\n  User root\n  Port {PORT}\n  BatchMode yes\n")
        self.authorized = self.folder / "authorized_keys"
        self.authorized.write_text((ssh / "id_ed25519.pub").read_text())

    def _start_sshd(self, name: str) -> None:
        config = self.folder / name / "sshd_config"
        config.write_text(f"""Port {PORT}
ListenAddress {self.addresses[name]}
HostKey {self.folder / name / "host_key"}
AuthorizedKeysFile {self.authorized}
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
SetEnv PATH={shlex.quote(self.path)}
""")
        log = (self.folder / name / "sshd.log").open("ab")
        command = self.command(name, [SSHD, "-D", "-e", "-f", config])
        self._sshds.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
