"""The registry of DSSP (the paper's DRS): domains and providers under leases, found by capability and area.

Pure: time is an argument, in seconds of any clock that does not go back.
"""
