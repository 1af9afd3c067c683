"""A query that fits nowhere is told with the reason, and with the remedy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance, check_places
from tests.helpers.edge_cloud_builders import case_document, dataflows, fabrics


def test_a_sink_that_is_too_fast_for_every_cloud_machine_is_told():
    document = case_document()["instance"]
    document["dataflows"][0]["queries"][0]["rate"] = 9000.0
    instance = instance_from_json(document)
    with pytest.raises(FieldError, match=r"queries\[1\] = 'query': no resource processes 9000 events/s of type 0"):
        check_places(instance.fabric, instance.dataflows[0])
    document["dataflows"][0]["queries"][0]["rate"] = 3000.0
    document["dataflows"][0]["queries"][1]["sigma"] = 2.0
    instance = instance_from_json(document)
    with pytest.raises(
        FieldError, match=r"no cloud machine processes 6000 events/s .* Lower the rate of dataflow chain"
    ):
        check_places(instance.fabric, instance.dataflows[0])


def test_a_source_needs_an_edge():
    document = case_document(edges=0)["instance"]
    document["dataflows"][0]["queries"][0]["pin"] = -1
    instance = instance_from_json(document)
    with pytest.raises(FieldError, match="there is no edge"):
        check_places(instance.fabric, instance.dataflows[0])


@settings(max_examples=60)
@given(st.data())
def test_a_query_fits_nowhere_if_and_only_if_each_resource_alone_breaks_a_constraint(data):
    fabric = data.draw(fabrics())
    dataflow = data.draw(dataflows(fabric))
    instance = Instance(fabric=fabric, dataflows=(dataflow,))
    lonely = []
    for v, query in enumerate(dataflow.queries):
        if query.kind == "source":
            continue
        for r in range(len(fabric.resources)):
            others = [other for other in range(len(fabric.resources)) if other != r]
            place = [others[0] if others else r] * len(dataflow.queries)
            place[v] = r
            broken = evaluate(instance, [place]).violations
            if {("throughput", 0, v), ("sink_not_in_cloud", 0, v), ("energy", r)}.isdisjoint(broken):
                break
        else:
            lonely.append(v)
    if lonely:
        with pytest.raises(FieldError, match=rf"queries\[{lonely[0]}\]"):
            check_places(fabric, dataflow)
    else:
        check_places(fabric, dataflow)
