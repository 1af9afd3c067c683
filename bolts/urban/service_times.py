"""Service rates of the operators, tuples/s, for `leeward.service_times: emulated`.

Nobody has published any for urban sensing. A line is read at the rate that Table II of the EDRP paper gives query 1's
source and parser; a single value, figure or result costs as little as query 1's ranking.
"""

from __future__ import annotations

from bolts.query1.service_times import TABLE2_RATE

LIKE: dict[str, str] = {
    "sensors": "data_source",
    "parser": "parser",
    "smooth": "partial_rank",
    "stats": "partial_rank",
    "city_index": "global_rank",
    "city_board": "global_rank",
}
RATES: dict[str, int] = {name: TABLE2_RATE[like] for name, like in LIKE.items()}
