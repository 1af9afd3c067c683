"""The model of edge and cloud: its values, their checks, their documents, and the paper's formulas."""
