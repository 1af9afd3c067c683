"""Edge and cloud: queries of dataflows that come and go, placed on edges with batteries and on cloud machines.

model/         the paper's formulas, their checks, and the evaluation of a placement; scalar, for reading
planning/      the same as arrays that change with each query that is placed or removed
methods/       TopSet and TopSet/P, ours, and their rivals; rebalance
"""
