"""The service's knowledge: its events, folded into one immutable report for each topology, and rings of figures."""
