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
    rounds: int  #: until all were right, or the most that were allowed
    circles: int  #: messages that passed a node twice
    hops: tuple[int, ...]  #: of those that were answered


def reach(
    play: Play, count: int, rng: Random, *, beats: float = 1.0, rounds: int = 1, alone: Alone | None = None
) -> Reached:
    """Send messages from nodes drawn by chance, let so much time pass, and judge the answers.

    Keys whose answer was wrong or missing are tried again, from another node, for so many `rounds`.  `alone` looks at
    the applications meanwhile.
    """
    left, circles, hops, used = [rng.getrandbits(BITS) for _ in range(count)], 0, [], 0
    while left and used < rounds:
        used += 1
        wrong = []
        for key, path in _paths(play, left, rng, beats, alone):
            if not path or path[-1] != play.root(key).me:
                wrong.append(key)
            circles += len(set(path)) < len(path)
            hops += [len(path) - 1] if path else []
        left = wrong
    return Reached(asked=count, right=count - len(left), rounds=used, circles=circles, hops=tuple(hops))


def _paths(play: Play, keys: list[int], rng: Random, beats: float, alone: Alone | None) -> list[tuple[int, list[int]]]:
    """Of each key, by addresses; empty: no answer."""
    sources = sorted(address for address, peer in play.peers.items() if peer.state == "joined")
    asked = []
    for key in keys:
        source = play.peers[rng.choice(sources)]
        number, sends = source.lookup(key, play.now)
        play.send(source.me, sends)
        asked.append((key, source, number))
    if alone is None:
        play.beats(beats)
    else:
        alone.beats(play, beats)
    answers = [(key, source.lookups.all.pop(number).answer) for key, source, number in asked]
    return [(key, [passed.at for passed in answer.path] if answer else []) for key, answer in answers]
