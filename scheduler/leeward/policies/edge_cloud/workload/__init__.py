"""Clusters and dataflows generated from a seed: the authors' own are not public."""
