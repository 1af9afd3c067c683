"""Questions to a solved problem: why so, what if, what to relax, which trade-offs."""
