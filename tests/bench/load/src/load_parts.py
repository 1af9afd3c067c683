"""What both systems of the throughput benchmark run, so that only their way through Storm differs.

A source sends numbered tuples as fast as Storm takes them, or `load.rate` in a second; the key of n is n mod 1000. The
sink appends a line to `load.out` five times a second: time, tuples so far, numbers that did not follow their
predecessor, and the delays (ms) of the tuples since the last line if `load.delays` is set.
"""

import os
import time

KEYS = 1000
BURST = 100


class Load:
    """The numbered tuples."""

    def __init__(self, conf):
        self.payload = "x" * int(conf["load.bytes"])
        self.rate = float(conf["load.rate"])
        self.due = time.monotonic()

    def next(self, n):
        """Tuples to send after number n; none yet if their time has not come."""
        if self.rate:
            if time.monotonic() < self.due:
                time.sleep(0.0005)
                return []
            self.due = max(self.due + 1 / self.rate, time.monotonic() - 0.1)
            return [self.tuple(n + 1)]
        return [self.tuple(number) for number in range(n + 1, n + 1 + BURST)]

    def tuple(self, n):
        return [f"k{n % KEYS}", n, time.time(), self.payload]


class Meter:
    """What arrives."""

    def __init__(self, conf):
        self.file = os.open(conf["load.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.delays = [] if conf.get("load.delays") else None
        self.count = self.last = self.gaps = 0
        self.due = time.time()

    def take(self, n, sent):
        self.count += 1
        self.gaps += n != self.last + 1
        self.last = n
        if self.delays is not None:
            self.delays.append(time.time() - sent)
            self.look()
        elif self.count % 256 == 0:
            self.look()

    def look(self):
        now = time.time()
        if now < self.due:
            return
        self.due = now + 0.2
        delays = ",".join(f"{delay * 1000:.3f}" for delay in self.delays or ())
        os.write(self.file, f"{now:.4f} {self.count} {self.gaps} {delays}\n".encode())
        if self.delays:
            self.delays.clear()


def compute(rounds):
    """Pure Python work; every round takes as long as any other."""
    value = 1
    for _ in range(rounds):
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
    return value
