"""Trained runs of one round of each task, exported to ONNX, and their answers."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from client.data.read import read_all
from common.config.parse import parse
from common.options import Scalar
from deploy.cli.app import app
from deploy.serving.load import open_model
from deploy.serving.service import build_app
from deploy.simulation.grid import simulate
from tests.support.asgi_client import AsgiClient

TASKS: dict[str, dict[str, Scalar]] = {
    "rules": {"method": "fedrule"},
    "sessions": {"method": "fedavg", "tasks.sessions.hidden": 8},
    "ratings": {"method": "fedavg"},
    "markets": {"method": "fedavg"},
    "traffic": {"method": "fedavg", "tasks.traffic.history": 48, "tasks.traffic.hidden": 4},
}
DATA = {
    "rules": "demo:0-6",
    "sessions": "demo:0-6",
    "ratings": "demo:0-6",
    "markets": "demo:0-2",
    "traffic": "demo:0-2",
}


def fedloom(*words: str) -> Any:
    """Return what a command prints as JSON."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, (done.exception, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def export_of(runs: Path, task: str, path: Path, *words: str) -> Path:
    """Export the run of that task, trained first if there is none."""
    if not (runs / task).exists():
        config = parse({"task": task, **TASKS[task], "rounds": 1, "run-id": task, "federation.min-clients": 1})
        simulate(config, read_all(task, DATA[task]), runs)
    fedloom("export-model", task, "--onnx", str(path), "--state-dir", str(path.parent), *words)
    return path


def ask(path: Path, body: dict[str, Any], data: str = "") -> list[dict[str, Any]]:
    """Return the items of an answer by an exported model."""
    model, serving, document = open_model(path, data)
    client = AsgiClient(build_app(model, serving, document.card, token="", hosts=()), "http://localhost", {})
    answer = client.post(f"/v1/{serving.route}", json=body)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items
