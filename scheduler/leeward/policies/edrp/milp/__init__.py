"""Integer programmes of EDRP for a MILP solver: the paper's, the restricted one, the compact one."""
