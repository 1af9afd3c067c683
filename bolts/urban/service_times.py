"""Service rates of the operators, tuples/s, for `leeward.service_times: emulated`.

Nobody has published any for urban sensing: each operator has the rate that Table II of the EDRP paper gives query 1's
of the same kind. A report is one tuple to the parser, and one for each of its six kinds to those behind it.
"""

from __future__ import annotations

from bolts.query1.service_times import TABLE2_RATE

LIKE: dict[str, str] = {
    "sensors": "data_source",
    "parser": "parser",
    "smooth": "count_by_window",
    "stats": "count_by_window",
    "city_index": "partial_rank",
    "city_board": "global_rank",
}
RATES: dict[str, int] = {name: TABLE2_RATE[like] for name, like in LIKE.items()}
