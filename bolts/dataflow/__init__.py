"""Any dataflow of sources, queries and sinks, as a file describes it: each query waits, and passes a share on."""
