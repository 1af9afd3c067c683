"""Delays between the nodes of a network of cities: great circles along links, shortest paths, one chosen mean."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leeward.core.errors import ConfigError, LeewardError

EARTH_RADIUS_KM = 6371.0
_GRAPHML = {"g": "http://graphml.graphdrawing.org/xmlns"}


class NetworkError(LeewardError):
    """A network file that cannot be used: unreadable, no coordinates, no such city, not connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class City:
    """A node of the network; degrees, north and east positive."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Cities and the links between them (pairs of positions in `cities`)."""

    cities: tuple[City, ...]
    links: tuple[tuple[int, int], ...]

    def position(self, name: str) -> int:
        """Where a city stands; raises `ConfigError` naming those that there are."""
        names = [city.name for city in self.cities]
        if name not in names:
            raise ConfigError(f"The network has no node {name!r}.", remedy=f"It has {', '.join(sorted(names))}.")
        return names.index(name)


def read_graphml(path: Path) -> Network:
    """A network in the GraphML of the Internet Topology Zoo (label, Latitude and Longitude on each node)."""
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError) as error:
        raise NetworkError(f"{path} cannot be read: {error}.", remedy="Name a GraphML file.") from None
    keys = {(key.get("for"), key.get("attr.name")): key.get("id") for key in root.findall("g:key", _GRAPHML)}
    cities: list[Any] = []
    place: dict[Any, int] = {}
    for node in root.findall(".//g:node", _GRAPHML):
        values = {data.get("key"): data.text or "" for data in node.findall("g:data", _GRAPHML)}
        try:
            name, north, east = (values[keys["node", key]] for key in ("label", "Latitude", "Longitude"))
            city = City(name=name, latitude=float(north), longitude=float(east))
        except (KeyError, ValueError):
            raise NetworkError(
                f"{path}: node {node.get('id')!r} has no label, Latitude and Longitude.",
                remedy="Name a file of the Internet Topology Zoo whose nodes have coordinates.",
            ) from None
        place[node.get("id")] = len(cities)
        cities.append(city)
    links = [(place[e.get("source")], place[e.get("target")]) for e in root.findall(".//g:edge", _GRAPHML)]
    if len(cities) < 2:
        raise NetworkError(f"{path} has {len(cities)} nodes.", remedy="Name a network of two nodes or more.")
    return Network(cities=tuple(cities), links=tuple(links))


def great_circle_km(a: City, b: City) -> float:
    """Length of the shortest way over the Earth's surface (haversine)."""
    north_a, north_b = math.radians(a.latitude), math.radians(b.latitude)
    east = math.radians(b.longitude - a.longitude)
    chord = math.sin((north_b - north_a) / 2) ** 2 + math.cos(north_a) * math.cos(north_b) * math.sin(east / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(chord)))


def shortest_paths_km(network: Network) -> list[list[float]]:
    """Length of the shortest path over links between every two cities (Floyd-Warshall)."""
    count = len(network.cities)
    length = [[0.0 if u == v else math.inf for v in range(count)] for u in range(count)]
    for u, v in network.links:
        km = great_circle_km(network.cities[u], network.cities[v])
        length[u][v] = length[v][u] = min(length[u][v], km)
    for via in range(count):
        for u in range(count):
            for v in range(count):
                length[u][v] = min(length[u][v], length[u][via] + length[via][v])
    if any(math.isinf(km) for row in length for km in row):
        raise NetworkError("The network is not connected.", remedy="Name one where every node reaches every other.")
    return length


@lru_cache(maxsize=64)
def scaled_delays_s(
    network: Network, without: tuple[str, ...], mean_s: float
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Names of the nodes and d_(u,v), proportional to the shortest path, with a mean of `mean_s` over u != v.

    Cities in `without` host nothing but still forward: paths may lead through them.
    """
    dropped = {network.position(name) for name in without}
    kept = [u for u in range(len(network.cities)) if u not in dropped]
    if len(kept) < 2:
        raise NetworkError(f"{len(kept)} nodes are left.", remedy="Leave two or more.")
    length = shortest_paths_km(network)
    total = sum(length[u][v] for u in kept for v in kept if u != v)
    second_per_km = mean_s * len(kept) * (len(kept) - 1) / total
    delays = tuple(tuple(second_per_km * length[u][v] for v in kept) for u in kept)
    return tuple(network.cities[u].name for u in kept), delays
