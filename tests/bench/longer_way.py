"""A way between two nodes becomes 40 ms longer: how long until every task there tells so, in virtual time.

    python tests/bench/longer_way.py [--seeds 8]

All tasks of a topology ask each other as `leeward.runtime.task.distance` does, ten minutes long; then the way becomes
longer. The service takes the shortest round trip that a task of either node tells, so the last of them counts. Printed
is the median over the seeds with and without asking again at once. Round trips are 10 ms and wait 2 ms in the mean.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
from unittest import mock

import msgpack
from rich.console import Console
from rich.table import Table

from leeward.runtime.task import distance

BEGIN_S, TRIP_S, WAIT_S, MORE_S = 600.0, 0.010, 0.002, 0.040
#: Nodes and tasks on each.
CLUSTERS = ((3, 2), (5, 4), (10, 2), (16, 4))


class World:
    """Tasks that ask each other; the way between the nodes 0 and 1 becomes longer at `BEGIN_S`."""

    def __init__(self, nodes: int, tasks: int, seed: int) -> None:
        self.now, self._rng = 0.0, random.Random(seed)
        self._nodes = {number: f"n{number % nodes}" for number in range(nodes * tasks)}
        addresses = {number: msgpack.packb([node, 1, b""]) for number, node in self._nodes.items()}
        self._tasks = {
            number: distance.Distance(lambda: addresses, number, node, measure=self._way(node))
            for number, node in self._nodes.items()
        }

    def _way(self, here: str):
        def measure(address: bytes, *_: object) -> tuple[float, bytes]:
            longer = self.now >= BEGIN_S and {here, msgpack.unpackb(address)[0]} == {"n0", "n1"}
            return TRIP_S + self._rng.expovariate(1 / WAIT_S) + MORE_S * longer, b""

        return measure

    def known_after_s(self) -> float:
        """From the moment in which the way becomes longer, s."""
        due = [(self._rng.random(), number) for number in self._tasks]
        heapq.heapify(due)
        while self.now < BEGIN_S or self._told() < TRIP_S + MORE_S:
            self.now, number = heapq.heappop(due)
            self._tasks[number].look()
            heapq.heappush(due, (self.now + self._tasks[number].pause_s(), number))
        return self.now - BEGIN_S

    def _told(self) -> float:
        """The shortest that a task of either node tells of the other, s."""
        ends = {"n0": "n1", "n1": "n0"}
        tasks = [(self._tasks[number], ends[node]) for number, node in self._nodes.items() if node in ends]
        return min((task.trips()[end] for task, end in tasks if end in task.trips()), default=math.inf)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    seeds = range(parser.parse_args().seeds)
    table = Table("nodes", "tasks on each", "asking again at once, s", "not, s")
    for nodes, tasks in CLUSTERS:

        def median_s(at: tuple[int, int] = (nodes, tasks)) -> str:
            return f"{statistics.median(World(*at, seed).known_after_s() for seed in seeds):.0f}"

        again = median_s()
        with mock.patch.object(distance, "LONGER", math.inf):
            table.add_row(str(nodes), str(tasks), again, median_s())
    Console().print(table)


if __name__ == "__main__":
    main()
