"""`leeward serve` while Redis or ZooKeeper is away, and its standby: real servers, with a Nimbus and tasks made here.

The policy wants another deployment every second, so a plan that goes by figures of before the outage would be seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from kazoo.exceptions import KazooException

from leeward.core.metrics import TaskMetrics
from leeward.wire.redis import client
from tests.helpers.control_commands import NIMBUS, App, Bots, actions, end_started, events, finish, leeward
from tests.helpers.control_twins import TASKS
from tests.helpers.nimbus_twin import Cluster as NimbusState
from tests.helpers.nimbus_twin import serving
from tests.helpers.servers import RedisServer, ZooKeeperServer
from tests.helpers.waiting import wait_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]

#: s. The pipeline has the short ones; an outage of a minute is what people ask about.
AWAY_S = [12.0, pytest.param(60.0, marks=pytest.mark.slow)]
#: A plan that was decided when the outage began may still be begun; s.
DECIDED_S = 2.0
SEESAW = """
from leeward.core.placing import carry, present_deployment

class Seesaw:
    def __init__(self, settings):
        pass

    def decide(self, view, *, now, rng):
        rate = view.measured["work"].arrival_rate
        assert 80.0 < rate < 120.0, rate
        present = present_deployment(view)
        other = {"n1": 1} if len(present["work"]) > 1 else {"n1": 1, "n2": 1}
        return carry(view, {**present, "work": other}, reason="seesaw")
"""
OPTIONS = (
    "policy=seesaw:Seesaw", "period_s=1", "cool_down_s=0", "window_s=2", "minimum_gain=0", "session_s=3",
    "ahead_bytes=100000", "scale_down_s=0", "no_return_s=0",
)  # fmt: skip


class Tellers:
    """All tasks' measurements and beats, twice a second: 100 tuples/s through each component."""

    def __init__(self, url: str) -> None:
        self.ahead_s: dict[int, float] = {}  # task -> of its node's clock
        self._client = client(url, timeout_s=0.5, tries=1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(0.5):
            with contextlib.suppress(redis.RedisError):
                self._tell(time.monotonic() - began)

    def _tell(self, seconds: float) -> None:
        count, inputs = int(seconds * 100), {"source": {}, "work": {"source": 0}, "sink": {"work": 0}}
        for task, name in TASKS.items():
            share = count if task in (1, 2, 5) else 0
            line = TaskMetrics(
                component=name, pid=task, t=1000.0 + seconds, received=dict.fromkeys(inputs[name], share),
                sent={"s": share}, mode="running", ahead_s=self.ahead_s.get(task),
            )  # fmt: skip
            self._client.hset("leeward:app-1-1:metrics", str(task), line.to_line())
            self._client.hset("leeward:app-1-1:alive", str(task), f"{task}:{seconds}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join(20)
        self._client.delete("leeward:app-1-1:metrics", "leeward:app-1-1:alive")
        self._client.close()


class Hands(Bots):
    """Bots that outlast an outage."""

    held = False  #: they keep reports of a handover or a pause to themselves

    def _live(self) -> None:
        while not self._stop.wait(0.02):
            with contextlib.suppress(KazooException):
                self._act()

    def _report(self, barrier: str) -> None:
        if not (self.held and barrier.startswith("handover")):
            super()._report(barrier)

    def hold(self, held: bool) -> None:
        """Keep them, or send them."""
        self.held, self.pausing = held, not held


class World:
    """The servers, and all that acts beside the service."""

    def __init__(self, zoo: ZooKeeperServer, server: RedisServer) -> None:
        self.zoo, self.server = zoo, server
        self.bots, self.tellers = Hands(zoo.hosts), Tellers(server.url)

    def close(self) -> None:
        end_started()
        self.tellers.close()
        self.bots.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[tuple[ZooKeeperServer, RedisServer]]:
    state = NimbusState()
    state.leader, state.both = NIMBUS, False
    with (
        ZooKeeperServer(tmp_path_factory.mktemp("zoo")) as zoo,
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        serving(state, NIMBUS, App),
    ):
        App.redis_url, App.zookeeper_port = server.url, zoo.port
        yield zoo, server


@pytest.fixture
def world(servers) -> Iterator[World]:
    world = World(*servers)
    yield world
    world.close()


class Served:
    """`leeward serve --http`, with the policy of this file."""

    def __init__(self, folder: Path) -> None:
        (folder / "seesaw.py").write_text(SEESAW)
        self.file = folder / "events.jsonl"
        paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        words = [word for option in OPTIONS for word in ("-o", option)]
        self.process = leeward(
            "serve", "app", "--http", "127.0.0.1:0", "--events", self.file, *words,
            env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip
        wait_for(lambda: "reconfiguration_ended" in actions(self.file))
        (self.url,) = [event["url"] for event in events(self.file) if event["action"] == "http_listens"]

    def missing(self) -> dict[str, dict]:
        """The missing things of the report, by name."""
        report = httpx.get(f"{self.url}api/topologies/app", timeout=10).json()["report"]
        return {one["what"]: one for one in report["missing"]}

    def times(self, action: str, since: float) -> list[float]:
        return [event["t"] for event in events(self.file) if event["action"] == action and event["t"] > since]

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        code, _, err = finish(self.process, timeout=100)
        assert code == 0 and "Traceback" not in err, err


def outlasts(served: Served, lacks: str, away_s: float, back) -> None:
    """The outage has begun: the page tells of it until `back()`, nothing is begun, and then plans go on."""
    began = time.time()
    wait_for(lambda: lacks in served.missing())
    since = served.missing()[lacks]["since"]
    assert began - 2 * DECIDED_S < since < began + 10.0 and served.missing()[lacks]["why"]
    while time.time() < began + away_s:
        assert lacks in served.missing(), "it is not back yet"
        time.sleep(0.5)
    assert not served.times("reconfiguration_started", began + DECIDED_S)
    ended = time.time()
    back()
    wait_for(lambda: served.times("reconfiguration_ended", ended), 90.0)
    wait_for(lambda: served.missing() == {})
    assert not [event for event in events(served.file) if event["action"] in ("reset", "alert", "held")]


@pytest.mark.parametrize("away_s", AWAY_S)
@pytest.mark.parametrize("how", ["stopped", "ended"])
def test_redis_away(world: World, tmp_path: Path, how: str, away_s: float):
    served, server = Served(tmp_path), world.server
    if how == "stopped":
        server.process.send_signal(signal.SIGSTOP)
        back = lambda: server.process.send_signal(signal.SIGCONT)  # noqa: E731
    else:
        server.stop()
        back = server.start
    try:
        outlasts(served, "measurements", away_s, back)
    finally:
        with contextlib.suppress(AssertionError):
            server.process.send_signal(signal.SIGCONT)
            server.process.poll() is None or server.start()
    served.end()


@pytest.mark.parametrize("away_s", AWAY_S)
def test_zookeeper_away(world: World, tmp_path: Path, away_s: float):
    """Longer than the session: leadership is lost, and had again."""
    served = Served(tmp_path)
    world.zoo.process.send_signal(signal.SIGSTOP)
    try:
        outlasts(served, "ZooKeeper", away_s, lambda: world.zoo.process.send_signal(signal.SIGCONT))
    finally:
        world.zoo.process.send_signal(signal.SIGCONT)
    served.end()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_service_ends_though_zookeeper_is_away(world: World, tmp_path: Path, number: int, code: int):
    """Its calls wait for ZooKeeper for as long as that takes; the wish to end does not."""
    served = Served(tmp_path)
    world.zoo.process.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: served.missing())
        served.process.send_signal(number)
        ended, _, err = finish(served.process, timeout=60)
    finally:
        world.zoo.process.send_signal(signal.SIGCONT)
    assert ended == code and "Traceback" not in err, err
    wait_for(lambda: world.bots.client.connected)


def test_a_clock_that_is_off_by_a_minute_is_told_and_disturbs_nobody(world: World, tmp_path: Path):
    served, began = Served(tmp_path), time.time()
    world.tellers.ahead_s = dict.fromkeys((3, 4), -60.0)  # both are on n2
    wait_for(lambda: "clocks" in served.missing())
    assert "n2 by 60 s (behind)" in served.missing()["clocks"]["why"]
    seen = time.time()
    wait_for(lambda: len(served.times("reconfiguration_ended", seen)) > 2)
    world.tellers.ahead_s = {}
    wait_for(lambda: served.missing() == {})
    assert not served.times("reset", began) and not served.times("measure_failed", began)
    served.end()


# --- the standby


@pytest.mark.parametrize("mode", ["live", "restart"])
def test_a_standby_ends_what_the_leader_that_was_killed_had_begun(world: World, tmp_path: Path, mode: str):
    """Prints how long that took, from kill -9 on, with the session that people have by default."""
    files = [tmp_path / f"{name}.jsonl" for name in ("first", "second")]
    options = ("-o", "policy=none", "-o", f"mode={mode}", "-o", "pause_s=60")
    first, second = (leeward("serve", "app", *options, "--events", file) for file in files)
    wait_for(lambda: any("leading" in actions(file) for file in files))
    wait_for(lambda: any("standby" in actions(file) for file in files))
    if "leading" not in actions(files[0]):
        first, second, files = second, first, files[::-1]
    world.bots.hold(True)
    asking = leeward("reconfigure", "app", "--replicas", "work=n1:1,n2:1")
    wait_for(lambda: "reconfiguration_started" in actions(files[0]))
    killed = time.time()
    first.kill()
    first.communicate()
    world.bots.hold(False)
    wait_for(lambda: "reconfiguration_ended" in actions(files[1]))
    told = {event["action"]: event for event in reversed(events(files[1]))}
    leads_s, ended_s = (told[name]["t"] - killed for name in ("leading", "reconfiguration_ended"))
    kind = told["reconfiguration_ended"]["kind"]
    print(f"\nstandby, {kind}: leads {leads_s:.1f} s after kill -9 of the leader, has ended it after {ended_s:.1f} s")
    assert told["reconfiguration_ended"]["result"] == "done"
    code, out, err = finish(asking)
    assert (code, out) == (0, "done"), err
    second.send_signal(signal.SIGTERM)
    assert finish(second)[0] == 0


def test_a_leader_that_ends_in_order_lets_the_standby_lead_at_once(world: World, tmp_path: Path):
    """It gives the lock back: nobody waits for the end of its session."""
    files = [tmp_path / f"{name}.jsonl" for name in ("first", "second")]
    options = ("-o", "policy=none", "-o", "session_s=30")
    first, second = (leeward("serve", "app", *options, "--events", file) for file in files)
    wait_for(lambda: {json.dumps("leading" in actions(file)) for file in files} == {"true", "false"})
    wait_for(lambda: any("standby" in actions(file) for file in files))
    if "leading" not in actions(files[0]):
        first, second, files = second, first, files[::-1]
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 0
    wait_for(lambda: "leading" in actions(files[1]), 15.0)  # half of the session
    second.send_signal(signal.SIGTERM)
    assert finish(second)[0] == 0
