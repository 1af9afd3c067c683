"""Leeward: Python topologies on Apache Storm that grow, shrink and move while they run."""

__version__ = "0.1.0"
