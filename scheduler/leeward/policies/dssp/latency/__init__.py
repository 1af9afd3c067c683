"""Measured latencies of nodes: histograms over a moving window, and the slowest of any set of nodes from them."""
