"""DEBS 2015 query 2: the ten most profitable areas of the last minutes.

The definition, as this package reads it. Areas are the cells of a grid of 600 x 600, 250 m wide, `1.1` centred as in
query 1. At data time t, with the rows read so far,

- the profit of an area is the median of fare and tip together, over the trips that started there and ended in
  (t - 15 min, t];
- its empty taxis are those whose last trip ended there in (t - 30 min, t]. A taxi's pickup is known when its next trip
  is reported, so a taxi is empty at the end of its last trip that was reported;
- its profitability is profit / empty taxis. An area without a profit or without an empty taxi has none.

The ten rank by profitability, highest first, and then by the latest row that counts in the area, a trip of its profit
or the last trip of an empty taxi, latest first. A result is due when a shown figure changed. Rows whose trip starts or
ends outside the grid count nowhere.

The computation lives in `fares`, `areas` and `logic` (pure); the operators are thin shells around it, and those that
read rows and tell the time are query 1's; `reference` computes the same rows in one process, by other means.
"""
