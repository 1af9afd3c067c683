"""The pure core: facts in, decisions out. Standard library only; no I/O, no clock, no global randomness."""
