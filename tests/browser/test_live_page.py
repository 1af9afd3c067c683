"""The live page of queries in a real browser: figures, charts, what it says of a server that stops."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.routing import Route

from leeward.dashboard.queries.page import FILES, routes
from leeward.local import places
from tests.helpers.page_figures import figures


@pytest.fixture(scope="module")
def uplot() -> Path:
    assert (places.web() / "uPlot.iife.min.js").exists(), "run make setup, which fetches uPlot"
    return places.web()


def probed(script: str, width: int = 1280) -> list[Route]:
    """The page in a frame at /probed, with a module of the test's: `result` of its script is in data-probe, each 2.5 s.

    The frame gets its width after a second: a window of Chromium's is never narrower than 500 pixels.
    """
    outer = (
        '<!doctype html><html><head><script src="frame.js" defer></script></head>'
        '<body><iframe src="inner" width="1000" height="2000"></iframe></body></html>'
    )
    frame = f'setTimeout(() => {{ document.querySelector("iframe").width = {width}; }}, 1000);'
    inner = (FILES / "page.html").read_text()
    inner = inner.replace("</head>", '<script src="probe.js" type="module"></script></head>')
    probe = (
        'import * as page from "/files/page.js";\n'
        f"setInterval(() => {{ {script}; parent.document.body.dataset.probe = JSON.stringify(result); }}, 2500);\n"
    )
    policy = {"Content-Security-Policy": "default-src 'self'"}  # without that on frames
    texts = {"/probed": outer, "/frame.js": frame, "/inner": inner, "/probe.js": probe}
    return [Route(path, _answer(text, path, policy)) for path, text in texts.items()]


def _answer(text: str, path: str, headers: dict[str, str]):
    kind = "text/javascript" if path.endswith(".js") else "text/html"
    return lambda _: Response(text, media_type=kind, headers=headers)


def test_it_shows_classes_and_marks_the_one_over_its_objective(site, show, uplot):
    page = show(site(routes(figures, uplot)).url)
    assert page.console == ()
    assert page.element("status") == "Running." and page.attribute("data-state") == "live"
    facts = "Profile testbed Discipline dssp-edfq Asked 18.0/s Served, 30 s 17.8/s Elapsed 7:00 Done 7,560 Partial 2"
    assert page.element("facts") == facts
    rows = page.rows("classes")
    assert [cells[0] for _, cells in rows] == ["1.1", "1.2", "2", "3"]
    assert rows[0][1] == ["1.1", "0.50 s", "0.41 s", "0.12 s", "82 %", "1,890", "8 (0.4 %)"]
    assert rows[2][1][4] == "▲ 108 % over"
    assert ["over" in head for head, _ in rows] == [False, False, True, False]
    assert page.element("tail-name") == "p99"
    for name in ("d1", "d2", "d3", "d4"):
        assert f'aria-label="Nodes of {name}"' in page.dom
    assert "21,840 started, 441 late (2.0 %)" in page.dom
    charts = page.text_between("charts", "domains")
    for label in ("1.1 0.82", "2 1.07", "objective 1.00", "d3 3.6 %", "d3 24"):
        assert label in charts, "the legends have the newest values"


def test_it_draws_three_charts_with_a_line_for_each_name(site, show, uplot):
    script = """const result = [...document.querySelectorAll("#charts canvas")].map((canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return new Set(new Uint32Array(pixels.buffer)).size;
    })"""
    page = show(site([*routes(figures, uplot), *probed(script)]).url + "probed", seconds=4)
    assert page.console == ()
    assert len(json.loads(page.attribute("data-probe"))) == 3
    assert all(colours > 50 for colours in json.loads(page.attribute("data-probe"))), "lines, text, and their edges"


def test_it_says_since_when_the_server_does_not_answer_and_keeps_the_figures(site, show, uplot):
    asked = count(1)

    def data():
        if next(asked) >= 3:
            served.stop()
            time.sleep(0.3)  # the page's time stands still meanwhile; else it may be over before the server has stopped
        return figures()

    served = site(routes(data, uplot))
    page = show(served.url, seconds=8)
    assert page.element("status").startswith("The server has not answered since ")
    assert page.attribute("data-state") == "silent"
    assert page.rows("classes")[0][1][2] == "0.41 s"


def test_it_says_that_the_server_fails_and_goes_on_when_it_answers_again(site, show, uplot):
    asked = count(1)

    def data(broken: range):
        if next(asked) in broken:
            raise RuntimeError("a fault of the test's")
        return figures()

    page = show(site(routes(lambda: data(range(2, 100)), uplot)).url, seconds=5)
    assert page.element("status").startswith("The server has answered with errors (500) since ")
    asked = count(1)
    page = show(site(routes(lambda: data(range(2, 4)), uplot)).url, seconds=7)
    assert next(asked) > 4 and page.element("status") == "Running."


def test_before_the_first_query_it_says_so(site, show, uplot):
    page = show(site(routes(lambda: figures(0), uplot)).url)
    assert page.element("status") == "Running. No query is done yet."
    assert page.rows("classes")[0][1] == ["1.1", "0.50 s", "–", "–", "–", "0", "0"]
    assert page.dom.count("<canvas") == 0 and page.console == ()


def test_it_names_a_domain_that_does_not_answer_and_the_end_of_the_run(site, show, uplot):
    told = figures()
    told["domains"][1]["answers"] = False
    served = site(routes(lambda: told, uplot))
    page = show(served.url)
    assert page.element("status") == "Running. d2 does not answer."
    assert page.dom.count("domain away") == 1
    told["running"] = False
    assert show(served.url).element("status") == "The run has ended. These are its last figures."


def test_without_uplot_it_shows_tables_and_says_why_there_are_no_charts(site, show, tmp_path):
    page = show(site(routes(figures, tmp_path)).url)
    assert '<p id="no-charts" class="note">' in page.dom and "uPlot is not installed" in page.element("no-charts")
    assert len(page.rows("classes")) == 4 and page.dom.count("<canvas") == 0


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_after_a_change_of_its_width_nothing_is_wider_than_the_window(site, show, uplot, width):
    script = """const result = [document.documentElement, ...document.querySelectorAll(".wide, .domain, .chart")]
      .map((one) => one.scrollWidth - one.clientWidth).concat(innerWidth)"""
    # the second answer counts: on a busy machine a chart may be drawn for its new width after the first one
    page = show(site([*routes(figures, uplot), *probed(script, width)]).url + "probed", seconds=6)
    *beyond, inner = json.loads(page.attribute("data-probe"))
    assert inner == width and set(beyond) == {0}


#: Calls of the page's functions, and their results.
WRITTEN = {
    "page.elapsed(59.9)": "0:59",
    "page.elapsed(3723)": "1:02:03",
    "page.inSeconds(null)": "–",
    "page.share(null, 1)": None,
    "page.share(1, 0)": None,
    "page.percent(0.004)": "0.4 %",
    "page.percent(0.0996)": "10 %",
    "page.verdict(1)": "100 %",
    "page.verdict(0.999)": "99 %",
    "page.verdict(1.001)": "▲ 101 % over",
    "page.tailName([{percent: 99}, {percent: 95}])": "Tail",
    "page.smooth([null, 1, null, 3], 2)": [None, 1, 1, 3],
    "page.stateOf({running: false}, {since: new Date()})": "ended",
    "page.statusText(null, null)": "Waiting for the server.",
}


def test_figures_are_written_as_people_read_them(site, show, uplot):
    script = f"const result = [{', '.join(WRITTEN)}]"
    page = show(site([*routes(figures, uplot), *probed(script)]).url + "probed", seconds=4)
    assert dict(zip(WRITTEN, json.loads(page.attribute("data-probe")), strict=True)) == WRITTEN
