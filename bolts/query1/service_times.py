"""Service rates of the operators: Table II of the EDRP paper ("Optimal Operator Deployment
and Replication for Elastic Distributed Data Stream Processing"), tuples/s.

`topologies/query1.py` puts them into the components' configuration; the runtime takes 1/rate seconds for each
tuple, without burning the processor, if the topology asks for `leeward.service_times: emulated`.
"""

from __future__ import annotations

TABLE2_RATE: dict[str, int] = {
    "data_source": 284,
    "parser": 233,
    "filter_by_coordinates": 253,
    "compute_route_id": 253,
    "metronome": 300,
    "count_by_window": 335,
    "partial_rank": 2371,
    "global_rank": 3000,
}
