"""The registry over HTTP: answers, tokens and the statuses of refusals."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from leeward.cli._dssp_registry import LARGEST_BODY, registry_app
from leeward.core.fields import FieldError
from leeward.policies.dssp.registry.registry import Registry

TOKENS = {"north": "secret-of-north", "south": "secret-of-south"}
ABOUT = {"url": "https://north:8443", "capabilities": ["camera"], "areas": [[0, 0, 10, 10]]}


def login(owner: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[owner]}"}


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def client(clock) -> TestClient:
    app = registry_app(Registry(10.0), TOKENS, lambda: clock[0])
    return TestClient(app, headers=login("north"), raise_server_exceptions=False)


def refusal(response, status: int, field: str) -> dict:
    assert response.status_code == status, response.text
    assert response.json().keys() == {"error", "field", "value", "remedy"}
    assert response.json()["field"] == field and response.json()["remedy"]
    return response.json()


def test_a_domain_registers_renews_is_found_and_leaves(client, clock):
    first = client.put("/domains/north", json=ABOUT)
    assert (first.status_code, first.json()) == (201, {"name": "north", "lease_s": 10.0})
    clock[0] = 9.0
    assert client.put("/domains/north", json=ABOUT | {"name": "north"}).status_code == 200
    clock[0] = 18.0
    found = client.get("/domains", params={"capability": "camera", "area": "5,5,20,20"})
    assert (found.status_code, found.json()) == (200, {"domains": [{"name": "north"} | ABOUT]})
    assert client.get("/health", headers={"Authorization": ""}).json() == {"status": "ok", "registrations": 1}
    left = client.delete("/domains/north")
    assert (left.status_code, left.content) == (204, b"")
    refusal(client.delete("/domains/north"), 404, "name")


def test_a_provider_registers_is_looked_up_and_leaves(client):
    assert client.put("/providers/north", json={"url": "https://maps"}).status_code == 201
    assert client.get("/providers/north", headers=login("south")).json() == {"name": "north", "url": "https://maps"}
    refusal(client.delete("/providers/north", headers=login("south")), 403, "name")
    assert client.delete("/providers/north").status_code == 204
    refusal(client.get("/providers/north"), 404, "name")


def test_nobody_registers_under_the_name_of_another(client):
    told = refusal(client.put("/domains/south", json=ABOUT), 403, "name")
    assert told["remedy"] == "Register 'north'."
    refusal(client.put("/providers/free", json={"url": "https://maps"}), 403, "name")


def test_registrations_free_the_memory_of_those_that_lapsed(clock):
    registry = Registry(10.0)
    client = TestClient(registry_app(registry, TOKENS, lambda: clock[0]), headers=login("north"))
    client.put("/domains/north", json=ABOUT)
    clock[0] = 20.0
    client.put("/domains/south", json=ABOUT, headers=login("south"))
    assert registry.expire(20.0) == ()


@pytest.mark.parametrize(
    "given", ["", "secret-of-north", "Basic secret-of-north", "Bearer", "Bearer no", "Bearer tökén"]
)
@pytest.mark.parametrize("path", ["/domains?capability=camera&area=0,0,1,1", "/providers/maps"])
def test_without_a_valid_token_nothing_is_told(client, given, path):
    response = client.get(path, headers={"Authorization": given.encode()})
    assert refusal(response, 401, "Authorization")["value"] is None
    assert response.headers["WWW-Authenticate"] == "Bearer" and "secret-of" not in response.text
    refusal(client.put("/domains/north", json=ABOUT, headers={"Authorization": given.encode()}), 401, "Authorization")
    refusal(client.delete("/domains/north", headers={"Authorization": given.encode()}), 401, "Authorization")


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("area=0,0,1,1", 400, "capability"),
        ("capability=camera", 400, "area"),
        ("capability=camera&capability=sound&area=0,0,1,1", 400, "capability"),
        ("capability=&area=0,0,1,1", 400, "capability"),
        ("capability=camera&area=0,0,1", 400, "area"),
        ("capability=camera&area=here", 400, "area"),
        ("capability=camera&area=0,0,NaN,1", 400, "area.east"),
        ("capability=camera&area=0,5,1,1", 400, "area.south"),
        ("capability=camera&area=0,0,999,1", 400, "area.east"),
        ("capability=camera&area=" + "[" * 5000, 400, "area"),
        ("capability=camera&area=0,0,1," + "1" * 5000, 400, "area"),
        ("capability=radar&area=0,0,1,1", 404, "capability"),
        ("capability=camera&area=20,20,30,30", 404, "area"),
    ],
)
def test_bad_questions_are_refused_with_field_and_remedy(client, query, status, field):
    client.put("/domains/north", json=ABOUT)
    refusal(client.get(f"/domains?{query}"), status, field)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, "body"),
        (b"\xff\xfe", 400, "body"),
        (b'{"url": "https://a", "url": "https://b"}', 400, "body"),
        (b"[" * 60_000, 400, "body"),
        (b"[]", 400, "domain"),
        (b"{}", 400, "domain.url"),
        (b'{"url": "https://a", "capabilities": ["a"], "areas": [[0, 0, Infinity, 1]]}', 400, "domain.areas[0].east"),
        (b'{"url": "\\ud800", "capabilities": ["a"], "areas": [[0, 0, 1, 1]]}', 400, "domain.url"),
        (b'{"name": "south"}', 400, "domain.name"),
        (b" " * (LARGEST_BODY + 1), 413, "body"),
    ],
)
def test_bad_registrations_are_refused_with_field_and_remedy(client, body, status, field):
    told = refusal(client.put("/domains/north", content=body), status, field)
    assert len(str(told["value"])) < 300


def test_a_body_in_pieces_is_counted(client):
    def pieces():
        for _ in range(20):
            yield b" " * 4096

    refusal(client.put("/domains/north", content=pieces()), 413, "body")


def test_a_name_that_is_none_is_refused(client):
    refusal(client.put("/domains/a%20b", json=ABOUT), 400, "domain.name")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("POST", "/domains", 405)])
def test_other_paths_and_methods_are_told_what_there_is(client, method, path, status):
    assert "GET /domains" in refusal(client.request(method, path), status, "path")["remedy"]


@pytest.mark.parametrize("tokens", [{"a": ""}, {"a": "ü"}, {"a": "same", "b": "same"}])
def test_tokens_that_tell_no_owner_are_refused(tokens):
    with pytest.raises(FieldError, match="tokens"):
        registry_app(Registry(), tokens, lambda: 0.0)
