"""Routes of the service's page: its files, those of uPlot, and the policy that keeps all of it to this service."""

from __future__ import annotations

import re

import pytest

from leeward.dashboard import BASE
from leeward.dashboard.service.page import FILES, LIBRARY, OWN, SHARED, routes
from tests.helpers.http_api import Stage


@pytest.fixture
def client(tmp_path):
    for name in LIBRARY:
        (tmp_path / name).write_text("library")
    with Stage().client(more=routes(tmp_path)) as client:
        yield client


def test_the_page_and_every_file_that_it_names_are_there(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    named = set(re.findall(r'(?:href|src)="files/([^"]+)"', page.text))
    assert named <= {*OWN, *SHARED, *LIBRARY}
    for name in (*OWN, *SHARED, *LIBRARY):
        assert client.get(f"/files/{name}").status_code == 200
    assert {path.name for path in FILES.iterdir()} == {*OWN, "page.html"}


def test_scripts_import_only_files_of_the_page_and_nothing_from_elsewhere():
    for path in (*FILES.iterdir(), *BASE.iterdir()):
        text = path.read_text()
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= set(OWN)
        assert not re.search(r"https?://(?!www\.w3\.org)", text), f"{path.name} names another server"
        assert " style=" not in text and "onclick" not in text, "the policy forbids it"


@pytest.mark.parametrize("name", ["page.html", "..%2Fpage.py", "none.js", "%2e%2e"])
def test_other_files_are_not_given(client, name):
    told = client.get(f"/files/{name}")
    assert told.status_code == 404 and told.json()["remedy"]


def test_without_uplot_the_remedy_is_said(tmp_path):
    with Stage().client(more=routes(tmp_path)) as client:
        told = client.get(f"/files/{LIBRARY[0]}")
        assert told.status_code == 404 and "make setup" in told.json()["remedy"]
