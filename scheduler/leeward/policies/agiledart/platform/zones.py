"""A converged overlay whose nodes stand in zones, and applications whose sensors and actuators are in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.application import Application, Operator
from leeward.policies.agiledart.overlay.ids import BITS
from leeward.policies.agiledart.platform.converged import Converged


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoned:
    """An overlay, and the nodes of each zone."""

    overlay: Converged
    zones: tuple[tuple[int, ...], ...]


def zoned(nodes: int, zones: int, rng: Random, *, side: float = 1.0, spread: float = 0.05) -> Zoned:
    """Nodes dealt evenly to zones; a zone's centre is random in a square, its nodes normal around it.

    `side` of the square: a proximity; `spread`: standard deviation of a coordinate, as a share of the side.
    Raises LeewardError unless each zone gets a node.
    """
    if not 1 <= zones <= nodes:
        raise LeewardError(f"zones: {zones} of {nodes} nodes.", remedy="Give each zone one node or more.")
    centres = [(rng.random() * side, rng.random() * side) for _ in range(zones)]
    ids = [rng.getrandbits(BITS) for _ in range(nodes)]
    around = [centres[number % zones] for number in range(nodes)]
    places = np.array([[rng.gauss(middle, spread * side) for middle in centre] for centre in around])
    return Zoned(overlay=Converged(ids, places), zones=tuple(tuple(sorted(ids[zone::zones])) for zone in range(zones)))


def chain(name: str, nodes: Sequence[int], rng: Random, *, operators: int, sources: int = 1) -> Application:
    """Sources whose streams go through a chain to a sink; the ends are on random ones of the nodes.

    Raises LeewardError if there are fewer operators than ends.
    """
    inner = operators - sources - 1
    if inner < 0 or sources < 1:
        raise LeewardError(
            f"application {name!r}: {operators} operators with {sources} sources.",
            remedy="Give a source, a sink, and what is between.",
        )
    made = [Operator(name=f"source{number}", at=rng.choice(nodes)) for number in range(sources)]
    upstream = tuple(operator.name for operator in made)
    for number in range(inner):
        made.append(Operator(name=f"operator{number}", upstream=upstream))
        upstream = (made[-1].name,)
    made.append(Operator(name="sink", upstream=upstream, at=rng.choice(nodes)))
    return Application(name, made)
