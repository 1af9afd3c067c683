"""Edge and cloud: queries of dataflows that come and go, placed on edges with batteries and on cloud machines.

model/         the paper's formulas, their checks, and the evaluation of a placement; scalar, for reading
planning/      the same as arrays that change with each query that is placed or removed, and compiled kernels on them
methods/       TopSet and TopSet/P, ours, and their rivals; rebalance
exact/         the best placement of one arriving dataflow, proven by an integer programme
workload/      clusters and dataflows generated from a seed
experiments/   the paper's figures beside ours
policy.py      all topologies together, from views to plans; facts.py reads the views, benchmark.py has the query types
"""
