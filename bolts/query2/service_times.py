"""Service rates of the operators, tuples/s, for `leeward.service_times: emulated`.

Nobody has published any for query 2: each operator has the rate that Table II of the EDRP paper gives query 1's of the
same kind.
"""

from __future__ import annotations

from bolts.query1.service_times import TABLE2_RATE

LIKE: dict[str, str] = {
    "data_source": "data_source",
    "parser": "parser",
    "locate": "filter_by_coordinates",
    "metronome": "metronome",
    "profit_by_area": "count_by_window",
    "empty_taxis": "count_by_window",
    "rank_areas": "partial_rank",
    "top_areas": "global_rank",
}
RATES: dict[str, int] = {name: TABLE2_RATE[like] for name, like in LIKE.items()}
