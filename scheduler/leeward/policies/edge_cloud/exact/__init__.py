"""The best placement of one arriving dataflow, with a proof: for small dataflows, so that a method's gap is known."""
