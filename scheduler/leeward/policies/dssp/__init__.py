"""DSSP (the paper "DSSP: A Distributed, SLO-aware, Sensing-domain-privacy-Preserving Architecture for
Sensing-as-a-Service", L. Sun et al.): budgets for tail latency, and queues that are ordered by them."""
