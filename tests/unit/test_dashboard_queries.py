"""Routes of the live page of queries: HTML, figures, files, and the policy that keeps all of it to this server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from leeward.adapters.organisations.serving import application
from leeward.dashboard.queries.page import FILES, LIBRARY, OWN, SHARED, routes
from tests.helpers.page_figures import figures


@pytest.fixture
def uplot(tmp_path: Path) -> Path:
    for name in LIBRARY:
        (tmp_path / name).write_text(f"/* {name} */")
    return tmp_path


@pytest.fixture
def client(uplot: Path) -> TestClient:
    return TestClient(application(routes(figures, uplot)))


def test_the_page_has_its_parts(client):
    answer = client.get("/")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("facts", "status", "classes", "empty", "no-charts", "tails", "late", "waiting", "domains"):
        assert f'id="{name}"' in answer.text
    assert 'role="status" aria-live="polite"' in answer.text


def test_figures_are_passed_through(client):
    answer = client.get("/data")
    assert answer.json() == figures()
    assert answer.headers["cache-control"] == "no-store"


def test_figures_are_asked_for_each_time(uplot):
    given = iter(({"done": 1}, {"done": 2}))
    client = TestClient(application(routes(lambda: next(given), uplot)))
    assert [client.get("/data").json() for _ in range(2)] == [{"done": 1}, {"done": 2}]


@pytest.mark.parametrize("path", ["/", "/data", "/files/page.js", "/files/nothing.js"])
def test_a_browser_may_load_from_this_server_alone(client, path):
    headers = client.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_nothing_is_inline_or_from_elsewhere():
    page = (FILES / "page.html").read_text()
    assert all("src=" in script for script in re.findall(r"<script[^>]*>", page))
    assert not re.search(r"<style| style=| on\w+=", page)
    for name in ("page.html", *OWN):
        addresses = re.findall(r"https?://[^\"' )]*", (FILES / name).read_text())
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, name


@pytest.mark.parametrize("name", [*OWN, *SHARED, *LIBRARY])
def test_each_file_that_the_page_names_is_found(client, name):
    answer = client.get(f"/files/{name}")
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    assert answer.status_code == 200 and answer.headers["content-type"].startswith(kinds[Path(name).suffix])
    assert f'"files/{name}"' in client.get("/").text


@pytest.mark.parametrize("name", ["page.html", "nothing", "..%2fpage.py", "%2e%2e/page.py", "LICENSE"])
def test_no_other_file_is(client, name):
    assert client.get(f"/files/{name}").status_code == 404


def test_without_uplot_its_files_are_missing_with_a_remedy(tmp_path):
    client = TestClient(application(routes(figures, tmp_path)))
    for name in LIBRARY:
        answer = client.get(f"/files/{name}")
        assert answer.status_code == 404 and "make setup" in answer.json()["remedy"]
    assert client.get("/").status_code == client.get("/files/page.js").status_code == 200
