"""The reference application's spouts and bolts."""
