"""One room for each published scheduler, and the baselines. No room imports another; what two share is in `core`."""
