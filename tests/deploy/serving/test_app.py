"""Local model server: guard, limits, and answers to bad requests, with a network of plain arrays."""

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.arrays import Array, Arrays
from common.config.parse import parse
from common.tasks.registry import demo_vocabulary
from deploy.serving.service import MAX_BODY, build_app
from deploy.serving.spec import ServedModel
from deploy.tasks.registry import DEPLOY_TASKS
from tests.support.asgi_client import AsgiClient

TOKEN = "t" * 43
HOME = {
    "devices": [{"id": "door", "type": "Contact sensor"}, {"id": "lamp", "type": "Light"}],
    "rules": [{"trigger": "door", "state": "opens", "action": "turn on", "device": "lamp"}],
}


def prefer_own(inputs: Arrays) -> Array:
    """Return equal logits of every rule, all likely, but a higher one of the rule in `HOME`."""
    n, relations = inputs["x"].shape[1], demo_vocabulary("rules").relations
    logits = np.full((1, n, n, len(relations)), 5, np.float32)
    logits[..., relations.index("opens → turn on")] = 6
    return logits


def served(task: str, network: Any = prefer_own) -> AsgiClient:
    ref = DEPLOY_TASKS[task].serving
    assert ref is not None
    model = ServedModel("r1", parse({"task": task, "method": "fedavg"}), demo_vocabulary(task), {}, network)
    app = build_app(model, ref.load(), {"run": "r1"}, token=TOKEN, hosts=("127.0.0.1", "localhost"))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return AsgiClient(app, "http://127.0.0.1:8766", headers)


@pytest.fixture(scope="module")
def client() -> AsgiClient:
    return served("rules")


def test_rules_that_a_home_has_are_left_out_unless_asked_for(client: AsgiClient) -> None:
    own = "when Contact sensor door opens, turn on Light lamp"
    without, having = (
        [one["what"] for one in client.post("/v1/recommend", json={**HOME, "top": 100, **more}).json()["items"]]
        for more in ({}, {"exclude_seen": False})
    )
    assert not any(rule.startswith(own) for rule in without)
    assert any(rule.startswith(own) for rule in having)
    assert without
    assert all(rule.startswith("when Contact sensor door") and rule.endswith("Light lamp") for rule in having)


def test_an_answer_names_the_run_and_has_scores(client: AsgiClient) -> None:
    answer = client.post("/v1/recommend", json={**HOME, "top": 1}).json()
    assert answer["model"] == "r1"
    assert [set(item) for item in answer["items"]] == [{"what", "score", "why"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"devices": [{"id": "x", "type": "Toaster"}, {"id": "y", "type": "Kettle"}]}, ("'Toaster'", "'Kettle'")),
        (
            {"rules": [{"trigger": "door", "state": "sings", "action": "turn on", "device": "lamp"}]},
            ("sings → turn on",),
        ),
        ({"rules": [{"trigger": "cat", "state": "opens", "action": "turn on", "device": "dog"}]}, ("'cat'",)),
        ({"rules": [{"trigger": "door", "state": "a → b", "action": "", "device": "lamp"}]}, ("relation's name",)),
        ({"devices": [{"id": "x", "type": "Light"}, {"id": "x", "type": "Light"}], "rules": []}, ("same id",)),
        ({"devices": [{"id": "x", "type": "Light"}] * 201}, ("devices", "200")),
        ({"devices": []}, ("no devices",)),
        ({"devices": [], "rules": []}, ("give the devices of the home",)),
        ({"top": 101}, ("top", "100")),
        ({"top": 0}, ("top",)),
        ({"color": "red"}, ("color",)),
        ({"devices": [{"id": "", "type": "Light"}]}, ("devices.0.id",)),
        ({"devices": [{"id": "x" * 201, "type": "Light"}]}, ("devices.0.id",)),
    ],
)
def test_a_wrong_body_is_refused_by_name(client: AsgiClient, change: dict[str, Any], words: tuple[str, ...]) -> None:
    answer = client.post("/v1/recommend", json={**HOME, **change})
    assert answer.status_code == 422, answer.text
    assert all(word in answer.json()["detail"] for word in words), answer.text


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"", b"\xff\xfe", b'"x"', b'{"top": NaN}', b'{"top": 1e999}', b"[" * 10**5]
)
def test_a_malformed_body_is_refused(client: AsgiClient, body: bytes) -> None:
    answer = client.post("/v1/recommend", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "6"])
def test_ratings_that_are_non_finite_or_off_the_scale_are_refused(value: str) -> None:
    items: tuple[str, ...] = demo_vocabulary("ratings").items
    body = f'{{"ratings": {{{json.dumps(items[0])}: {value}}}}}'
    answer = served("ratings").post("/v1/recommend", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_a_body_above_the_limit_is_refused_and_one_below_is_read(client: AsgiClient) -> None:
    assert client.post("/v1/recommend", content=b" " * (MAX_BODY + 1)).status_code == 413
    padded = json.dumps(HOME).encode().ljust(MAX_BODY)
    assert client.post("/v1/recommend", content=padded, headers={"Content-Type": "application/json"}).status_code == 200


def test_a_body_in_chunks_above_the_limit_is_refused(client: AsgiClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b" " * 2**16

    assert client.post("/v1/recommend", content=chunks()).status_code == 413


@pytest.mark.parametrize("path", ["/v1/recommend", "/v1/model", "/openapi.json", "/v1/forecast", "/nothing"])
@pytest.mark.parametrize(
    "authorization", ["", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_without_the_token_nothing_is_answered(client: AsgiClient, path: str, authorization: str) -> None:
    answer = client.get(path, headers={"Authorization": authorization.encode()})
    assert answer.status_code == 401
    assert "Bearer" in answer.json()["detail"]


def test_health_needs_no_token(client: AsgiClient) -> None:
    assert client.get("/healthz", headers={"Authorization": ""}).json() == {"status": "ok"}


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:8766", "127.0.0.1.example.org", "localhost@evil", "", ":8766"]
)
def test_a_foreign_host_is_refused(client: AsgiClient, host: str) -> None:
    assert client.get("/v1/model", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost", "localhost:8766"])
def test_this_machine_is_no_foreign_host(client: AsgiClient, host: str) -> None:
    assert client.get("/v1/model", headers={"Host": host}).json() == {"run": "r1"}


def test_no_other_origin_is_allowed(client: AsgiClient) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    for answer in (
        client.request("OPTIONS", "/v1/recommend", headers=headers),
        client.get("/v1/model", headers=headers),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.request("OPTIONS", "/v1/recommend", headers=headers).status_code == 405


def test_the_schema_describes_the_body_and_no_page_loads_from_elsewhere(client: AsgiClient) -> None:
    schema = client.get("/openapi.json").json()
    assert {"devices", "rules", "top", "exclude_seen"} <= set(
        schema["components"]["schemas"]["RulesRequest"]["properties"]
    )
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_a_failure_inside_shows_and_logs_no_value_of_the_body(caplog: pytest.LogCaptureFixture) -> None:
    def broken(inputs: Arrays) -> Array:
        raise RuntimeError("secret-lamp")

    with caplog.at_level(logging.DEBUG):
        answer = served("rules", broken).post("/v1/recommend", json=HOME)
    assert answer.status_code == 500
    assert "secret-lamp" not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_importing_the_server_imports_no_torch(tmp_path: Path) -> None:
    program = """
import sys
import deploy.commands.serve_model, deploy.serving.service, deploy.serving.load
from deploy.tasks.registry import DEPLOY_TASKS
for task in DEPLOY_TASKS.usable():
    if task.serving: task.serving.load()
assert not {"torch", "flwr", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], check=True)
