"""The simulated platform of the paper (section 6.1): tasks come, are mapped, run at the rate of their links, and go."""
