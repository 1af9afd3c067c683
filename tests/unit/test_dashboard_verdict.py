"""The demo's verdict, its live view and the README's picture of it, on made-up facts."""

import io
import runpy
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from leeward.cli import _replayed
from leeward.cli._replayed import Rows
from leeward.dashboard.live import Operator, Screen, render, sparkline
from leeward.dashboard.verdict import compare


def test_equal_streams_are_good():
    assert compare([1, 2], ["a", "b"], ["a", "b"]).good


def test_loss_repeat_and_order_each_show():
    lost = compare([1], ["a"], ["a", "b"])
    assert (lost.lost, lost.duplicated, lost.good) == (
        1,
        0,
        False,
    ) and "the first 1 agree" in lost.first_difference
    doubled = compare([1, 2, 2], ["a", "b", "b"], ["a", "b"])
    assert (doubled.lost, doubled.duplicated, doubled.out_of_order, doubled.good) == (0, 1, 1, False)
    swapped = compare([2, 1], ["b", "a"], ["a", "b"])
    assert (swapped.lost, swapped.duplicated, swapped.out_of_order, swapped.good) == (0, 0, 1, False)
    assert "row 1: wrote 'b', expected 'a'" in swapped.first_difference


def test_sparkline_scales_to_the_largest_value():
    assert sparkline([0, 1, 2, 4]) == "▁▃▅█" and sparkline([]) == "" and sparkline([0, 0]) == "▁▁"


def a_screen() -> Screen:
    return Screen(
        title="query1",
        clock="05:12",
        elapsed_s=61,
        rates=[60, 120, 215],
        responses_ms=[50, 80],
        backlog=12,
        cost=9.0,
        downtime_share=0.031,
        migration="PAUSE: 12 of 18 tasks have exported",
        history=["scale-out parser 1 -> 2"],
        operators=[
            Operator(
                name="parser",
                replicas=2,
                tasks=3,
                places={"127.0.0.11": 1, "127.0.0.12": 1},
                rate=214.6,
                busy=0.46,
            )
        ],
        routes=[("155.162", "156.161")],
    )


def test_the_view_fits_a_terminal_and_shows_what_it_is_told():
    console = Console(width=104, record=True, file=io.StringIO())
    console.print(render(a_screen()))
    text = console.export_text()
    assert len(text.splitlines()) <= 40
    for expected in ("215 tuples/s", "2 of 3", "46%", "127.0.0.12", "3.1%", "12 of 18", "155.162 -> 156.161"):
        assert expected in text


def test_the_maker_of_the_picture_knows_the_demo(tmp_path, monkeypatch):
    rows = Rows(data="none", slices=tmp_path, last=1, reference=())
    monkeypatch.setattr(_replayed, "generated_rows", lambda options, data, folder: rows)
    picture = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs/picture.py"))
    with ExitStack() as stack:
        assert picture["filmed"](tmp_path, 3.0, 6600, stack).options[0] == "mode=live"
    image = picture["draw"](a_screen())
    assert image.size[0] > 1000 and len(image.getcolors()) > 4
    left = [image.getpixel((x, y)) for x in range(60) for y in range(image.size[1])]
    frame = [left[x * image.size[1] :][: image.size[1]] for x in range(60)]
    longest = max(_longest_run(column, frame[0][0]) for column in frame)
    assert longest > 3 * 28, "the lines of a frame meet from row to row"


def _longest_run(column, ground):
    longest = run = 0
    for pixel in column:
        run = run + 1 if pixel != ground else 0
        longest = max(longest, run)
    return longest
