"""One room for each published scheduler, and the baselines. No room imports another; shared code is in `core`."""
