"""The paper's figures on the simulated testbed and at scale, and ours beside them."""
