"""Redis or ZooKeeper away for a minute, while plans are made every few seconds on a real Storm under load.

The page says what is missing and since when, no plan goes by figures of before, no number is lost or doubled at the
sink, and planning goes on afterwards.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.local import processes
from tests.cluster.harness import Running, await_, revive
from tests.cluster.plans_served import PlansServed, outlasts

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

AWAY_S = 60.0


@pytest.fixture
def served(counting: Running, tmp_path: Path) -> Iterator[PlansServed]:
    served = PlansServed(counting, tmp_path)
    served.planned(0.0)
    yield served
    served.kill()


def resets(served: PlansServed) -> list[dict]:
    return served.events("reset") + served.events("alert") + served.events("held")


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_redis_away_for_a_minute(counting: Running, served: PlansServed, how: str):
    cluster, stream = counting.cluster, counting.stream
    repeated = stream.flow().repeated
    if how == "stopped":
        daemon = cluster.daemons["redis"]
        processes.send(daemon, signal.SIGSTOP)
        back = lambda: processes.send(daemon, signal.SIGCONT)  # noqa: E731
    else:
        cluster.kill_daemon("redis")
        back = lambda: cluster.start_daemon("redis")  # noqa: E731
    ended = outlasts(served, ["measurements"], AWAY_S, back)
    served.planned(ended)
    await_(lambda: served.missing() == {}, "nothing to be missing any more")
    tally = stream.settled(400, timeout_s=120)
    assert tally.repeated == repeated and not resets(served), resets(served)
    served.end()


def test_zookeeper_away_for_a_minute(counting: Running, served: PlansServed):
    """Every session ends. Storm's own daemons and workers may end themselves; a service manager starts daemons again,
    and the topology restores a cut if its processes were replaced."""
    cluster, stream = counting.cluster, counting.stream
    stream.flow()
    cluster.stop_daemon("zookeeper")
    ended = outlasts(served, ["ZooKeeper"], AWAY_S, lambda: cluster.start_daemon("zookeeper"))
    revived: list[str] = []
    until = time.monotonic() + 20.0
    while time.monotonic() < until:  # they end when they find their session expired
        revived += revive(cluster)
        time.sleep(0.5)
    print(f"\nstarted again: {revived}")
    served.planned(ended, 240.0)
    await_(lambda: served.missing() == {}, "nothing to be missing any more")
    stream.settled(400, timeout_s=120)
    assert not served.events("held")
    served.end()
