"""The cheapest map, by a search over the whole network."""
