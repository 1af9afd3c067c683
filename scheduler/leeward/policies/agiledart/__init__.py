"""AgileDART: no master, scaling by root finding, state in fragments, paths that learn."""
