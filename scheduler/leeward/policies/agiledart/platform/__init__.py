"""Many nodes of the overlay in one process: a converged network, and a simulation of messages in virtual time."""
