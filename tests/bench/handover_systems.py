"""The counting topology at 1,000 tuples/s over 10,000 keys, reconfigured in every way that is compared."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from delays import delays_in, p999_of, quantiles, worst_of
from machine import stolen_s
from sink_log import Window, assess
from systems import PATIENCE_S, Ours, Plain

from leeward.local import LocalCluster

QUIET_S = 20.0  # in which nothing is done to the topology
MOVES, LARGE_MB = 10, 100  # moves of a state that is smaller


class Restart(Ours):
    """(b)."""

    rate, keys, workers = 1000, 10_000, 3
    title = "restart"

    def repetition(self) -> None:
        (home,) = self.count_nodes()
        warm = self.warm_node(home)
        self.reconfigure("scale-out, tables", (home, warm))
        self.reconfigure("scale-in, tables", (home,))
        self.reconfigure("move, tables", (warm,))
        free = self.free_node()
        self.reconfigure("scale-out, executors", (warm, free))
        self.reconfigure("scale-in, tables", (warm,))
        self.reconfigure("move, executors", (self.free_node(),))

    def warm_node(self, *used: str) -> str:
        """Another node that has a task of the count."""
        slots = self.slots()
        return min({slots[task].node for task in self.tasks("count")} - set(used))


class Handover(Restart):
    """(c)."""

    title = "handover"

    def repetition(self) -> None:
        (home,) = self.count_nodes()
        warm = self.warm_node(home)
        self.reconfigure("scale-out", (home, warm))
        self.reconfigure("scale-in", (home,))
        self.reconfigure("move", (warm,))

    def quiet(self) -> dict[str, float]:
        """Delays while nothing is done to it: what the machine and the checkpoints do by themselves."""
        began, stolen = time.time(), stolen_s()
        time.sleep(QUIET_S)
        ended, stolen = time.time(), stolen_s() - stolen
        time.sleep(1.0)
        return {**quantiles(delays_in(self.sink.rows(), began, ended)), "stolen_s": round(stolen, 2)}

    def many(self, count: int) -> dict[str, Any]:
        """So many handovers, one after the other."""
        (first,) = self.count_nodes()
        second = self.warm_node(first)
        third = self.warm_node(first, second)
        ring = [(first, second), (second,), (second, third), (third,), (first, second, third), (first,)]
        self.sink.await_steady()
        began = time.time()
        answers: dict[str, int] = {}
        for number in range(count):
            answer = self.ask(ring[number % len(ring)])
            answers[answer] = answers.get(answer, 0) + 1
        window = Window(began_s=began, ended_s=time.time())
        time.sleep(2.0)
        return {"handovers": count, "seconds": round(window.ended_s - began, 1), "answers": answers, "window": window}


class Big(Handover):
    """(c) with a large state behind the count, which moves as a whole."""

    def __init__(self, cluster: LocalCluster, project: Path, folder: Path, megabytes: int) -> None:
        self.keys = max(Restart.keys, megabytes * 1000)
        self.more = (f"counting.fill={megabytes * 1_000_000 // self.keys}",)
        self.megabytes = megabytes
        self._checkpoints = 0  # committed when the last move ended
        super().__init__(cluster, project, folder)

    def moves(self) -> dict[str, Any]:
        """Move it, a little state several times: the best time, and the worst that tuples noticed until an answer."""
        quiet, times = self.sink.await_steady(10.0), MOVES if self.megabytes < LARGE_MB else 1
        self._checkpoints = self._committed()
        measured = [self._move() for _ in range(times)]
        runs = [run for run, _ in measured]
        seconds = sorted(run["seconds"] for run in runs)
        return {
            "megabytes": self.megabytes, "keys": self.keys, "moves": times, "quiet_gap_s": quiet,
            "answers": sorted({run["answer"] for run in runs}), "bytes": max(run["bytes"] for run in runs),
            "seconds": seconds[0], "median_seconds": seconds[times // 2], **worst_of(runs),
            "p999_s": p999_of(delays for _, delays in measured), "exact": all(run["exact"] for run in runs),
            "runs": runs,
        }  # fmt: skip

    def _move(self) -> tuple[dict[str, Any], list[float]]:
        (home,) = self.count_nodes()
        there = self.warm_node(home)
        self._await_checkpoint()  # a plan waits for the end of one that is being written, and it may take seconds
        began, stolen = time.time(), stolen_s()
        answer = self.ask((there,))
        ended, stolen = time.time(), stolen_s() - stolen
        self._checkpoints = self._committed()
        time.sleep(1.0)
        event = self.told("reconfiguration_ended")[-1]
        self.sink.await_steady()
        rows = self.sink.rows()
        (damage,) = assess(rows, [Window(began_s=began, ended_s=ended)])
        delays = delays_in(rows, began, ended)
        return {
            "answer": answer, "seconds": round(ended - began, 3), "bytes": event["bytes_imported"],
            "phases": event["phases"], "pause_s": event["pause_s"], **quantiles(delays), **asdict(damage),
            "exact": damage.exact, "stolen_s": round(stolen, 2),
        }, delays  # fmt: skip

    def _await_checkpoint(self) -> None:
        """Until another one is committed."""
        until = time.monotonic() + PATIENCE_S
        while self._committed() == self._checkpoints:
            if time.monotonic() > until:
                raise SystemExit(f"no checkpoint in {PATIENCE_S:g} s")
            time.sleep(0.1)

    def _committed(self) -> int:
        return len(self.told("checkpoint_committed"))


class Brought(Restart):
    """(c) to nodes that have no task of the count: a warm one is brought there first."""

    title = "brought"

    def separate(self) -> None:
        """The first plan takes warm tasks into slots of their own, as `warm_apart` has it."""
        self.ask(self.count_nodes())
        self.sink.await_steady()

    def repetition(self) -> None:
        self.reconfigure("move", (self.free_node(),))
        if "prepare_s" not in (phases := self.events[-1].details["phases"]):
            raise SystemExit(f"no warm task was brought: {phases}")


class Stock(Plain):
    """(a)."""

    rate, keys, workers = Restart.rate, Restart.keys, Restart.workers
    title = "rebalance"
