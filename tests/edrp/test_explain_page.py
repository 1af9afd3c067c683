"""The page, the text and the picture of an explanation: complete, harmless, legible."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.questions.explain import explain
from leeward.policies.edrp.questions.running import explanation_document
from leeward.policies.edrp.views.explain_layout import CHIP_H, Rect, layout
from leeward.policies.edrp.views.explain_page import page
from leeward.policies.edrp.views.explain_picture import shorten
from leeward.policies.edrp.views.explain_text import print_explanation
from leeward.policies.edrp.views.explain_words import tables
from tests.helpers.solve_builders import chain_document, reference_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)

HOSTILE = "<script>alert('x')</script>&\"]]>"


def explained(document: dict) -> dict:
    problem = problem_from_json(document)
    return explanation_document(problem, explain(problem))


@pytest.fixture(scope="module")
def chain() -> dict:
    return explained(chain_document(nodes=4))


@pytest.fixture(scope="module")
def hostile() -> dict:
    text = json.dumps(chain_document()).replace('"work"', json.dumps(HOSTILE)).replace('"n1"', json.dumps("[red]<n1>"))
    return explained(json.loads(text) | {"name": HOSTILE})


def spread_document(nodes: int, replicas: int) -> dict:
    """A made-up explanation: the reference application with its replicas dealt out to the nodes in turn."""
    document = reference_document(nodes, 4)
    at = iter(range(10**6))
    placed = {}
    for op in document["operators"]:
        ids = [f"n{next(at) % nodes}" for _ in range(1 if op["k"] == 1 else replicas)]
        placed[op["id"]] = {node: ids.count(node) for node in ids}
    return {
        "nodes": [
            {"id": f"n{u}", "placed": {op: p[f"n{u}"] for op, p in placed.items() if f"n{u}" in p}}
            for u in range(nodes)
        ],
        "operators": [{"id": op["id"]} for op in document["operators"]],
        "streams": [
            {
                "from": s["from"], "to": s["to"], "rate": s["rate"],
                "links": [{"from": u, "to": v} for u in placed[s["from"]] for v in placed[s["to"]]],
            }
            for s in document["streams"]
        ],
    }  # fmt: skip


def inside(inner: Rect, outer: Rect) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.w <= outer.x + outer.w
        and inner.y + inner.h <= outer.y + outer.h
    )


@pytest.mark.parametrize(("nodes", "replicas"), [(2, 4), (8, 1), (8, 4), (24, 4), (500, 4)])
def test_nothing_in_the_picture_covers_anything_else(nodes, replicas):
    document = spread_document(nodes, replicas)
    plan = layout(document)
    assert set(plan.boxes) == {node["id"] for node in document["nodes"] if node["placed"]}
    for (op, node), chip in plan.chips.items():
        assert inside(chip, plan.boxes[node]), (op, node)
        assert chip.h == CHIP_H
    for group in (plan.boxes, plan.chips):
        assert not [pair for pair in combinations(group, 2) if group[pair[0]].meets(group[pair[1]])]
    labels = [edge.label for edge in plan.edges if edge.label is not None]
    assert not [pair for pair in combinations(labels, 2) if pair[0].meets(pair[1])]
    assert not [label for label in labels for chip in plan.chips.values() if label.meets(chip)]
    canvas = Rect(x=0, y=0, w=plan.width, h=plan.height)
    assert all(inside(box, canvas) for box in plan.boxes.values())
    assert len(plan.edges) == sum(len(stream["links"]) for stream in document["streams"])


def test_the_page_is_well_formed_and_shows_what_is_placed(chain):
    tree = ET.fromstring(page(chain).removeprefix("<!DOCTYPE html>\n"))
    chips = [g for g in tree.iter("g") if g.get("class", "").startswith("spot chip")]
    assert len(chips) == sum(len(placed) for placed in chain["deployment"].values())
    boxes = [g for g in tree.iter("g") if g.get("class") == "spot node"]
    assert len(boxes) == sum(bool(node["placed"]) for node in chain["nodes"])
    hot = [g for g in chips if "hot" in g.get("class", "")]
    assert len(hot) == len(chips)  # all of a chain is critical
    assert all(g.get("tabindex") == "0" and g.get("aria-label") and g.find("title") is not None for g in chips)
    text = " ".join(tree.itertext())
    assert "2 other nodes are not used" in text
    for table in tables(chain):
        assert table.title in text


def test_the_page_loads_nothing(chain, hostile):
    for document in (chain, hostile):
        html = page(document)
        assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", html)
        tree = ET.fromstring(html.removeprefix("<!DOCTYPE html>\n"))
        for element in tree.iter():
            assert element.tag not in {"link", "img", "iframe", "object", "embed", "base", "image", "use"}
            assert not {"src", "href", "srcset", "action", "onload", "onerror"} & set(element.attrib)


def test_ids_cannot_become_markup(hostile):
    html = page(hostile)
    tree = ET.fromstring(html.removeprefix("<!DOCTYPE html>\n"))
    assert len(list(tree.iter("script"))) == 1
    assert "<script>alert" not in html
    assert HOSTILE in "".join(tree.find("body").itertext())
    assert {g.get("aria-label", "").split(":")[0] for g in tree.iter("g")} >= {"node [red]<n1>"} or "[red]<n1>" in html


def test_the_text_shows_ids_as_they_are(hostile):
    stream = io.StringIO()
    print_explanation(hostile, stream, width=220)
    assert HOSTILE in stream.getvalue()
    assert "[red]<n1>" in stream.getvalue()


def test_the_page_says_why_there_is_no_deployment():
    document = explained(chain_document() | {"bounds": {"r": 0.001, "c": 20, "d": 1}})
    tree = ET.fromstring(page(document).removeprefix("<!DOCTYPE html>\n"))
    text = " ".join(tree.itertext())
    assert "infeasible" in text and document["why"][0] in text
    assert tree.find(".//svg") is None


def test_long_ids_are_cut_in_the_middle():
    assert shorten("countByWindow", 19) == "countByWindow"
    cut = shorten("a-very-long-operator-name-17", 19)
    assert len(cut) == 19 and cut.startswith("a-very") and cut.endswith("ame-17")


def test_every_row_has_a_cell_for_each_column(chain):
    for table in tables(chain):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.head)}
