"""Values and formulas of bi-modal links."""
