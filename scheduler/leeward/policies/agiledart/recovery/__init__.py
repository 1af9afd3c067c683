"""State that survives in erasure-coded fragments at neighbours: coding, choice of m and k, and the way back."""
