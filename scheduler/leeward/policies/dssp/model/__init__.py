"""The paper's formulas, scalar and slow, for reading and for tests."""
