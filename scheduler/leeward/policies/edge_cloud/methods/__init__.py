"""Methods that choose a resource for each query of an arriving dataflow."""
