"""The run of `leeward experiment agiledart-recovery`: agents, nodes that rebuild and links, all on this machine."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import secrets
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import typer

from leeward.adapters.fragment_agent import FragmentAgent, FragmentFiles
from leeward.cli._background import forked
from leeward.cli._common import sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.cli._recovery_shaping import Relayed, relay
from leeward.core.errors import LeewardError, SnapshotError
from leeward.policies.agiledart.experiments import recovery as study
from leeward.policies.agiledart.recovery.coding import Manifest, Rebuild
from leeward.policies.agiledart.recovery.scheme import Fragments
from leeward.policies.agiledart.recovery.settings import FragmentSettings
from leeward.runtime.state.scattered import Scattered
from leeward.wire.fragments import AgentClient

NAME = "agiledart-recovery"
#: All that an agent may keep, bytes; and for it to answer at the start, s.
MOST, START_S = 4 * 10**9, 20.0
#: Ahead of the common start of nodes that rebuild at the same time, s.
LEAD_S = 0.3
#: Bytes that a generator gives at once.
PIECE = 1 << 24
TOPOLOGY, CUT, GROUP = "recovery", 1, 0


class Job(NamedTuple):
    """A state that a node is to rebuild."""

    record: dict[str, Any]
    m: int
    k: int
    secret: bytes


class Rebuilt(NamedTuple):
    """The outcome: seconds, and the state's SHA-256, or the error."""

    seconds: float
    digest: bytes
    error: str


def run_recovery(*, quick: bool, seed: int, output: Output, out: Path) -> None:
    """The whole run. Raises LeewardError and OSError."""
    sigterm_interrupts()
    scale = study.QUICK if quick else study.FULL
    began = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    measured: dict[str, float] = {}
    for part, measure in (("state", _measure_state), ("ring", _measure_ring)):
        folder = out / part
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            measured |= measure(scale, random.Random(f"{seed} {part}"), folder, stack)
    command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}"
    seconds = time.monotonic() - began
    tell(NAME, study.conclude(scale, measured), command=command, seed=seed, seconds=seconds, output=output, out=out)


def _say(line: str) -> None:
    typer.echo(line, err=True)


class Site:
    """Agents, the relay in front of them, and processes for nodes that rebuild."""

    def __init__(self, folder: Path, agents: int, rates: list[float], stack: ExitStack, nodes: int) -> None:
        """`rates`: of links, bytes/s; those of the agents' uplinks first."""
        self.folder, self.secret, self._stack, self._rates = folder, secrets.token_bytes(32), stack, rates
        ports = _free_ports(agents)
        self.ports, self.pids = ports, list[int]()
        for number, port in enumerate(ports):
            serve = partial(_serve, folder / f"agent-{number}", port, self.secret)
            self.pids.append(stack.enter_context(forked(serve, folder / f"agent-{number}.log")))
        # nodes that rebuild are forked before this process has threads
        self.pool = stack.enter_context(ProcessPoolExecutor(nodes, mp_context=multiprocessing.get_context("fork")))
        list(self.pool.map(time.sleep, [0.05] * nodes))
        for port in ports:
            _await(port)

    def reach(self, ways: list[tuple[int, int]]) -> list[str]:
        """Addresses at the relay for (agent, link of the node's download), in this order."""
        ports = _free_ports(len(ways))
        relayed = [
            Relayed(port=port, agent=self.ports[agent], uplink=agent, download=download)
            for port, (agent, download) in zip(ports, ways, strict=True)
        ]
        self._stack.enter_context(forked(partial(relay, relayed, self._rates), self.folder / "relay.log"))
        for port in ports:
            _await(port)
        return [f"127.0.0.1:{port}" for port in ports]

    def put(self, addresses: list[str], state: bytes, m: int, k: int, cut: int = CUT) -> Job:
        """Write a state to these agents."""
        scheme = Fragments(FragmentSettings(m=m, k=k))
        kept = Scattered(scheme, addresses, self.secret).put(TOPOLOGY, cut, "task", {GROUP: state})
        return Job(kept.record, m, k, self.secret)

    def kill(self, agent: int) -> None:
        """As a node that loses its power."""
        with suppress(ProcessLookupError):
            os.kill(self.pids[agent], signal.SIGKILL)

    def fragment(self, agent: int) -> Path:
        """The file that it keeps."""
        (found,) = (self.folder / f"agent-{agent}" / TOPOLOGY).glob("*/*")
        return found


def _serve(folder: Path, port: int, secret: bytes) -> None:
    FragmentAgent(FragmentFiles(folder, MOST), ("127.0.0.1", port), secret).run()


def _free_ports(count: int) -> list[int]:
    """That nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _await(port: int) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise LeewardError(f"port {port}: nobody listens.", remedy="Look into the logs.") from None
            time.sleep(0.02)


# --- in the processes of nodes that rebuild


def rebuild(job: Job, cut: int = CUT, start: float = 0.0) -> Rebuilt:
    """By stripes, from all holders. `start`: when to begin, monotonic."""
    logging.getLogger("leeward").setLevel(logging.ERROR)  # holders are killed on purpose
    time.sleep(max(0.0, start - time.monotonic()))
    access = Scattered(Fragments(FragmentSettings(m=job.m, k=job.k)), [], job.secret)
    began = time.monotonic()
    try:
        state = access.get(TOPOLOGY, cut, job.record, [GROUP])[GROUP]
    except SnapshotError as error:
        return Rebuilt(time.monotonic() - began, b"", str(error))
    return Rebuilt(time.monotonic() - began, sha256(state).digest(), "")


def rebuild_whole(job: Job, fragments: list[int]) -> Rebuilt:
    """From these whole fragments, fetched at the same time, each as one answer; decoded when all are there."""
    began = time.monotonic()
    manifest = Manifest.from_bytes(job.record["record"])
    layout = manifest.layout
    size = sum(layout.block(layout.stripes - 1))
    found: dict[int, bytearray] = {}

    def fetch(fragment: int) -> None:
        client = AgentClient(manifest.holders[fragment], job.secret, START_S)
        client.way.socket.settimeout(None)
        client.way.send(["get", TOPOLOGY, CUT, f"{job.record['part']}.{fragment}", 0, size])
        client.way.receive()
        found[fragment] = client.way.read(size)
        client.close()

    threads = [threading.Thread(target=fetch, args=(fragment,)) for fragment in fragments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = Rebuild(manifest)
    for stripe in range(layout.stripes):
        begin, length = layout.block(stripe)
        for fragment, whole in found.items():
            state.take(stripe, fragment, memoryview(whole)[begin : begin + length])
    view = state.state()
    return Rebuilt(time.monotonic() - began, sha256(view).digest(), "")


# --- one state


def _measure_state(scale: study.Scale, rng: random.Random, folder: Path, stack: ExitStack) -> dict[str, float]:
    """One node rebuilds its state: the three ways, then failures and forgeries."""
    count = study.M + study.K
    parts = [*study.UPLINKS, study.STORE_UPLINK]
    site = Site(folder, count + 1, [*(part * scale.download for part in parts), scale.download], stack, nodes=1)
    addresses = site.reach([(agent, count + 1) for agent in range(count + 1)])
    state = b"".join(rng.randbytes(min(PIECE, scale.size - at)) for at in range(0, scale.size, PIECE))
    wanted, began = sha256(state).digest(), time.monotonic()
    job = site.put(addresses[:count], state, study.M, study.K)
    found = {"written": time.monotonic() - began, "wrong": 0.0}
    central = site.put(addresses[count:], state, 1, 0)
    del state
    holders = Manifest.from_bytes(job.record["record"]).holders
    by_speed = sorted(range(count), key=lambda fragment: -study.UPLINKS[addresses.index(holders[fragment])])

    def done(call: Any, *about: Any) -> Rebuilt:
        outcome: Rebuilt = site.pool.submit(call, *about).result()
        found["wrong"] += bool(outcome.digest) and outcome.digest != wanted
        return outcome

    ways = {"ours": (rebuild, job), "whole": (rebuild_whole, job, by_speed[: study.M]), "central": (rebuild, central)}
    for name, way in ways.items():
        seconds = []
        for _ in range(scale.runs):
            outcome = done(*way)
            if outcome.error:
                raise LeewardError(f"{name}: {outcome.error}", remedy=f"Look into {folder}.")
            seconds.append(outcome.seconds)
            _say(f"{name}: {outcome.seconds:.2f} s")
        found[name] = median(seconds)

    first, second, third, forger = (addresses.index(holders[fragment]) for fragment in by_speed[:4])
    file = site.fragment(forger)
    right = file.read_bytes()
    file.write_bytes(rng.randbytes(len(right)))
    site.kill(first)
    outcome = done(rebuild, job)
    found["forged right"] = float(outcome.digest == wanted)
    site.kill(second)
    found["forged loss told"] = float("is lost" in done(rebuild, job).error)
    file.write_bytes(right)
    outcome = done(rebuild, job)
    found["k right"], found["k failures"] = float(outcome.digest == wanted), outcome.seconds
    _say(f"{study.K} holders killed: {outcome.seconds:.2f} s")
    site.kill(third)
    found["loss told"] = float("is lost" in done(rebuild, job).error)
    return found


# --- many states


def _measure_ring(scale: study.Scale, rng: random.Random, folder: Path, stack: ExitStack) -> dict[str, float]:
    """Nodes of a ring fail together, each with the fragments that it keeps of others, and are rebuilt elsewhere."""
    most = max(scale.failures)
    download = scale.ring_download
    rates = [study.RING_UPLINK * download] * study.RING + [download] * most
    site = Site(folder, study.RING, rates, stack, nodes=most)
    nodes = [study.APART * number for number in range(most)]
    ways = [(agent, study.RING + number) for number, node in enumerate(nodes) for agent in study.neighbours(node)]
    addresses, count = site.reach(ways), study.M + study.K
    jobs, wanted = [], []
    for number in range(most):
        state = rng.randbytes(scale.ring_size)
        mine = addresses[number * count : (number + 1) * count]
        jobs.append(site.put(mine, state, study.M, study.K, CUT + number))
        wanted.append(sha256(state).digest())
    found, wrong = {}, 0
    for failures in scale.failures:
        for node in nodes[:failures]:
            site.kill(node)
        start = time.monotonic() + LEAD_S
        futures = [site.pool.submit(rebuild, jobs[number], CUT + number, start) for number in range(failures)]
        outcomes = [future.result() for future in futures]
        if lost := [outcome.error for outcome in outcomes if outcome.error]:
            raise LeewardError(f"{failures} failures: {lost[0]}", remedy=f"Look into {folder}.")
        wrong += sum(outcome.digest != right for outcome, right in zip(outcomes, wanted, strict=False))
        found[f"{failures} at once"] = max(outcome.seconds for outcome in outcomes)
        _say(f"{failures} nodes fail at once: {found[f'{failures} at once']:.2f} s")
    if wrong:
        raise LeewardError(f"{wrong} states of the ring are wrong.", remedy="This is a fault of Leeward: report it.")
    return found
