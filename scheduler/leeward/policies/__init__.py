"""One file for each published scheduler, and a baseline: `decide(view, *, now, rng) -> Plan`."""
