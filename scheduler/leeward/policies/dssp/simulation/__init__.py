"""Many queues at once: queries that fan out to domains and nodes, compiled, and the load that they sustain."""
