"""Topologies that arrive and depart: one joint policy places all of them, an interval at a time.

`arrivals.py` draws who comes and goes, `run.py` asks the policy, `rows.py` keeps what came of it, `summary.py` sums it
up. Cluster, catalogue and figures are those of a `core.workload.Workload`.
"""
