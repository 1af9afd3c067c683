"""A courier and what it calls back."""

from __future__ import annotations

import queue
import threading

from leeward.runtime.handover.courier import Courier
from leeward.runtime.pacing import Pacing

LONG_S = 20
PACING = Pacing()


class Task:
    """A courier and what it calls back."""

    def __init__(self, server, number, host="", pacing=PACING):
        self.server, self.called = server, threading.Event()
        owner = f"task {number} of count"
        self.courier = Courier(server.url, "t-1", number, owner, self._post, host, self.called.set, pacing=pacing)
        self.said: queue.Queue = queue.Queue()
        self.groups: dict = {}
        self.bytes = 0
        self.later: list = []  #: work of the courier, and the seconds that it is put off

    def warm(self):
        self.courier.warm(lambda job, after_s: self.later.append((job, after_s)))

    def _post(self, work):
        work()

    def send(self, epoch, parcels):
        sending = self.courier.send(epoch, lambda: self.said.put("sent"), lambda why: self.said.put(f"failed: {why}"))
        whole = {
            task: {group: (entries.items(), ()) for group, entries in groups.items()}
            for task, groups in parcels.items()
        }
        sending.finish(whole)
        return sending

    def receive(self, epoch, groups):
        wanted = set(groups)

        def arrived(groups, size):
            self.groups |= groups
            self.bytes += size
            if wanted <= self.groups.keys():
                self.said.put("whole")

        self.courier.receive(epoch, wanted, arrived, lambda why: self.said.put(f"failed: {why}"))

    def word(self):
        return self.said.get(timeout=LONG_S)


def key(task, epoch=3):
    return f"leeward:t-1:handover:{epoch}:{task}"
