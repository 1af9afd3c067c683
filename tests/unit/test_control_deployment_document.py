"""Deployment documents: any shape is either read or refused with key, value and remedy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.deployment_document import diff_document, read_deployment
from leeward.core.errors import PlanError


def test_a_document():
    document = {"topology": "app", "deployment": {"work": {"n1": 1, "n2": 2}}}
    assert read_deployment(document) == ("app", {"work": {"n1": 1, "n2": 2}})


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (None, "the document is None"),
        ({"topology": "app", "deploiment": {}}, "unknown key 'deploiment'"),
        ({"topology": 3}, "'topology' is 3"),
        ({"topology": "app"}, "the deployment is None"),
        ({"topology": "app", "deployment": {"work": 2}}, "the deployment of 'work' is 2"),
        ({"topology": "app", "deployment": {"work": {"n1": 0}}}, "'work' has 0 replicas on 'n1'"),
        ({"topology": "app", "deployment": {"work": {"n1": True}}}, "'work' has True replicas on 'n1'"),
        ({"topology": "app", "deployment": {"work": {1: 1}}}, "'work' has 1 replicas on 1"),
    ],
)
def test_other_shapes_are_refused(document, match):
    with pytest.raises(PlanError, match=match):
        read_deployment(document)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
)


@given(values | st.fixed_dictionaries({"topology": values, "deployment": values}))
def test_nothing_but_a_deployment_gets_through(document):
    try:
        topology, deployment = read_deployment(document)
    except PlanError as error:
        assert error.remedy
    else:
        assert topology and all(count >= 1 for counts in deployment.values() for count in counts.values())


def status(**proposal):
    return {"topology": "app", "epoch": 4, "deployment": {"work": {"n1": 1}, "sink": {"n3": 1}}, "proposal": proposal}


def test_a_difference_names_what_a_document_does_not_change_as_it_is():
    told = diff_document(status(), {"work": {"n2": 1}})
    assert told["wanted"] == {"work": {"n2": 1}, "sink": {"n3": 1}}
    assert told["changes"] == [{"component": "work", "kind": "move", "before": {"n1": 1}, "after": {"n2": 1}}]
    none = diff_document(status(), None)
    assert none["changes"] == [] and none["reason"] == "no plan waits for approval"
    old = diff_document(status(plan=2, epoch=3, reason="load", deployment={"work": {"n2": 1}}), None)
    assert old["plan"] == 2 and old["expired"] == "it was made in epoch 3" and len(old["changes"]) == 1
