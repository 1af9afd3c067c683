"""Measurements in a play of the overlay: which keys are reached, and which applications have a scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from leeward.policies.agiledart.overlay.ids import BITS
from leeward.policies.agiledart.platform.play import Play

#: Looks at the applications in a heartbeat.
LOOKS = 10


@dataclass(slots=True, kw_only=True)
class Alone:
    """Applications that no living scheduler serves, though their owners live. Times in heartbeats, to one look."""

    since: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0

    def look(self, play: Play) -> None:
        """Note the state of all."""
        now, alone = play.now / play.times.heartbeat, _alone(play)
        self.since = {name: self.since.get(name, now) for name in alone}
        self.longest = max([self.longest, *(now - begin for begin in self.since.values())])

    def beats(self, play: Play, number: float) -> None:
        """Let so many heartbeats pass, and look meanwhile."""
        for _ in range(round(number * LOOKS)):
            play.beats(1 / LOOKS)
            self.look(play)


def _alone(play: Play) -> list[str]:
    found = []
    for peer in play.peers.values():
        for name, owned in peer.schedulers.owned.items():
            scheduler = play.peers.get(owned.scheduler.at) if owned.scheduler and owned.served else None
            if scheduler is None or not scheduler.schedulers.active or name not in scheduler.schedulers.served:
                found.append(name)
    return found


def schedulers_of(play: Play) -> Mapping[str, int]:
    """Zone -> living schedulers."""
    return Counter(peer.schedulers.zone for peer in play.peers.values() if peer.schedulers.active)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Of messages to keys drawn by chance."""

    asked: int
    right: int  #: the answer came from the living node that is nearest to the key
    circles: int  #: a message passed a node twice
    hops: tuple[int, ...]  #: of those that were answered


def reach(play: Play, count: int, rng: Random, *, beats: float = 1.0, alone: Alone | None = None) -> Reached:
    """Send messages from nodes drawn by chance, let so much time pass, and judge the answers.

    `alone` looks at the applications meanwhile.
    """
    sources = sorted(address for address, peer in play.peers.items() if peer.state == "joined")
    asked = []
    for _ in range(count):
        source, key = rng.choice(sources), rng.getrandbits(BITS)
        number, sends = play.peers[source].lookup(key, play.now)
        play.send(source, sends)
        asked.append((play.peers[source], number, key))
    if alone is None:
        play.beats(beats)
    else:
        alone.beats(play, beats)
    lookups = [(peer.lookups.all.pop(number), key) for peer, number, key in asked if peer.me in play.peers]
    paths = [([one.at for one in lookup.answer.path], key) for lookup, key in lookups if lookup.answer]
    return Reached(
        asked=len(lookups), right=sum(path[-1] == play.root(key).me for path, key in paths),
        circles=sum(len(set(path)) < len(path) for path, _ in paths), hops=tuple(len(path) - 1 for path, _ in paths),
    )  # fmt: skip
