"""Bi-modal links: chains of services mapped by messages onto servers joined by dedicated links and the public network.

model/     servers, links, tasks, and walks: maps that are still being extended
exact/     the cheapest map, by a search over the whole network
mapping/   the same by messages between servers that know their neighbours only: events in, messages out
"""
