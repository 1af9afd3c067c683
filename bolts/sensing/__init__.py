"""Readings for subtasks that the domains of DSSP hand to a topology, in the order of their deadlines.

`asks` reads them, `sense` takes the readings, `answers` writes them; `streams` is all that they know of Redis.
"""
