"""Compiled: the planners of `planners.py`, and packets that they send over a network one after the other.

Nodes are numbered so that each link leads to a higher number, from the source (0) to the sink (the last); links are
sorted by their tails, those of node v from `first[v]` to `first[v + 1]`.
"""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.agiledart.paths.compiled import kernel
from leeward.policies.agiledart.paths.kernel_draws import attempts, share
from leeward.policies.agiledart.paths.kernel_estimates import forget, kl_costs, learn, thompson_costs

KL, THOMPSON, NEXT_HOP, END_TO_END, OPTIMAL = 0, 1, 2, 3, 4
#: No bound on the hops that a planner looks ahead.
ALL_HOPS = 0


@kernel
def to_sink(first, heads, costs, ahead):  # type: ignore[no-untyped-def]
    """J of each node: the least cost of its paths to the sink."""
    ahead[-1] = 0.0
    for node in range(len(ahead) - 2, -1, -1):
        ahead[node] = math.inf
        for link in range(first[node], first[node + 1]):
            ahead[node] = min(ahead[node], costs[link] + ahead[heads[link]])


@kernel
def over_hops(first, heads, costs, hops, ahead):  # type: ignore[no-untyped-def]
    """J of each node over its next `hops` links alone."""
    ahead[:] = 0.0
    for _ in range(hops):
        for node in range(len(ahead) - 1):  # heads of its links still have the round before
            least = math.inf
            for link in range(first[node], first[node + 1]):
                least = min(least, costs[link] + ahead[heads[link]])
            ahead[node] = least


@kernel
def along_costs(first, heads, costs, ahead, path):  # type: ignore[no-untyped-def]
    """Fills `path` with the links from the source on, each of least cost and J; returns their number."""
    node, length = 0, 0
    while node < len(ahead) - 1:
        best = first[node]
        for link in range(first[node] + 1, first[node + 1]):
            if costs[link] + ahead[heads[link]] < costs[best] + ahead[heads[best]]:
                best = link
        path[length] = best
        length += 1
        node = heads[best]
    return length


@kernel
def next_hops(first, heads, s, t, visits, stream, path):  # type: ignore[no-untyped-def]
    """Algorithm 3: each node takes the link of least mean delay, or with probability 1 / visits any."""
    node, length = 0, 0
    while node < len(visits) - 1:
        visits[node] += 1.0
        low, high = first[node], first[node + 1]
        if share(stream) <= 1.0 - 1.0 / visits[node]:
            best, least = low, math.inf
            for link in range(low, high):
                mean = t[link] / s[link] if s[link] > 0.0 else 0.0
                if mean < least:
                    best, least = link, mean
        else:
            best = low + int(share(stream) * (high - low))
        path[length] = best
        length += 1
        node = heads[best]
    return length


@kernel
def counted(first, heads, ways):  # type: ignore[no-untyped-def]
    """The number of paths from each node to the sink that have so many links: [nodes, links of a path]."""
    ways[:] = 0
    ways[-1, 0] = 1
    for node in range(len(ways) - 2, -1, -1):
        for link in range(first[node], first[node + 1]):
            ways[node, 1:] += ways[heads[link], :-1]


@kernel
def numbered(first, heads, ways, number, path):  # type: ignore[no-untyped-def]
    """Fills `path` with the links of the path of this number, shorter ones first; returns how many they are."""
    length = 0
    while number >= ways[0, length]:
        number -= ways[0, length]
        length += 1
    node = 0
    for place in range(length):
        link, left = first[node], length - place - 1
        while number >= ways[heads[link], left]:
            number -= ways[heads[link], left]
            link += 1
        path[place] = link
        node = heads[link]
    return length


@kernel
def scattered(ways, strides, sent):  # type: ignore[no-untyped-def]
    """The path that end-to-end tries as its n-th (from 0): shorter ones first, those as long in steps of a stride."""
    before, length = 0, 0
    while sent - before >= ways[0, length]:
        before += ways[0, length]
        length += 1
    return before + (sent - before) * strides[length] % ways[0, length]


@kernel
def least_bound(first, heads, ways, s, sums, counts, scale, tau, path):  # type: ignore[no-untyped-def]
    """Algorithm 2: the number of the path of least confidence bound."""
    best, least = 0, math.inf
    for number in range(len(sums)):
        visits = 0.0
        for place in range(numbered(first, heads, ways, number, path)):
            visits += s[path[place]]
        bound = sums[number] / counts[number] - math.sqrt(scale * math.log(tau) / visits)
        if bound < least:
            best, least = number, bound
    return best


@kernel
def send(rule, first, heads, thetas, every, strides, seeds, paths, delays):  # type: ignore[no-untyped-def]
    """Sends packets over a network; fills in the links of each, and its expected delay beyond the least, slots.

    `rule`: kind, c, fade, age, doubt, hops, L + 1; `thetas`: success probabilities of all links, a row for each
    `every` packets; `seeds`: of attempts, of the planner.
    """
    kind, c, fade, age, doubt, hops, scale = rule
    nodes, links, packets = len(first) - 1, len(heads), len(delays)
    world, stream = seeds[0:1].copy(), seeds[1:2].copy()
    s, t, costs = np.zeros(links), np.zeros(links), np.ones(links)
    ahead, visits, best = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    ways = np.zeros((nodes, nodes), np.int64)
    counted(first, heads, ways)
    room = min(ways[0].sum(), packets)
    sums, counts = np.zeros(room), np.zeros(room)
    slots = 0
    for packet in range(packets):
        theta, path, number = thetas[packet // every], paths[packet], 0
        if packet % every == 0:
            to_sink(first, heads, 1.0 / theta, best)
        if kind == END_TO_END:
            if packet < room:
                number = scattered(ways, strides, packet)
            else:
                number = least_bound(first, heads, ways, s, sums, counts, scale, slots + 1, path)
            length = numbered(first, heads, ways, number, path)
        elif kind == NEXT_HOP:
            length = next_hops(first, heads, s, t, visits, stream, path)
        else:
            if kind == KL:
                kl_costs(s, t, c, slots + 1, costs)
            elif kind == THOMPSON:
                thompson_costs(s, t, doubt, stream, costs)
            else:
                costs[:] = 1.0 / theta
            if hops == ALL_HOPS:
                to_sink(first, heads, costs, ahead)
            else:
                over_hops(first, heads, costs, hops, ahead)
            length = along_costs(first, heads, costs, ahead, path)
        path[length:] = -1
        delay = 0
        delays[packet] = -best[0]
        for place in range(length):
            link = path[place]
            took = attempts(world, theta[link])
            learn(s, t, link, took, fade)
            delay += took
            delays[packet] += 1.0 / theta[link]
        forget(s, t, age, delay)
        if kind == END_TO_END and number < room:
            sums[number] += delay
            counts[number] += 1.0
        slots += delay
