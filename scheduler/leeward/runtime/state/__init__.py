"""Keyed state, its snapshots, and where they are kept."""
