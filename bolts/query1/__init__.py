"""DEBS 2015 query 1: the ten most frequent taxi routes of the last 30 minutes.

The computation lives in `trips`, `grid` and `logic` (pure: no Storm, no I/O, no clock); the eight operators
are thin shells around it, one file each; `reference` computes the same rows in one process, by other means,
to compare with.
"""
