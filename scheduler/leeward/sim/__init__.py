"""Simulated worlds: the ports of the service in memory, and both ends of the protocol over in-memory channels."""
