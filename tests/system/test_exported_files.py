"""Files of an export: card and metadata, refusals that write nothing, and answers without torch."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from deploy.cli.app import app

pytestmark = pytest.mark.system


def test_the_card_and_the_file_state_run_vocabulary_and_privacy(export: Callable[..., Path]) -> None:
    path = export("rules")
    card = json.loads(path.with_name("model-card.json").read_text("utf-8"))
    page = path.with_name("model-card.md").read_text("utf-8")
    properties = {one.key: one.value for one in onnx.load(path).metadata_props}
    assert properties["run"] == properties["task"] == "rules"
    assert properties["privacy"] == card["privacy"]["statement"]
    assert "trained without noise: what it reveals of clients is not bounded" in card["privacy"]["statement"].lower()
    assert properties["model_sha256"] == card["model_sha256"]
    assert properties["catalogue_sha256"] == card["catalogue_sha256"]
    assert {"for", "not_for", "verdict", "licence", "seed", "versions"} <= set(card)
    assert card["privacy"]["statement"] in page


def test_a_refused_export_writes_nothing(export: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "rules.onnx"
    path.write_text("mine")
    done = CliRunner().invoke(app, ["export-model", "rules", "--onnx", str(path)])
    assert "exists; remove it" in str(done.exception)
    other = tmp_path / "other.onnx"
    for words, text in {
        ("--user", "home-00001"): "--user needs data; add --data FILE",
        ("--site", "s1"): "--site does not apply to run 'rules'; use --user",
    }.items():
        assert text in str(CliRunner().invoke(app, ["export-model", "rules", "--onnx", str(other), *words]).exception)
    assert path.read_text() == "mine"
    assert not other.exists()


def test_answers_import_no_torch(export: Callable[..., Path]) -> None:
    path = export("rules")
    program = f"""
import sys
from pathlib import Path
from deploy.serving.service import build_app
from deploy.serving.load import open_model
model, serving, document = open_model(Path({str(path)!r}))
build_app(model, serving, document.card, token="", hosts=())
body = serving.request(devices=[{{"id": "a", "type": "Light"}}, {{"id": "b", "type": "Camera"}}])
answer = serving.answer(model, body)
assert answer.items or answer.notes
assert not {{"torch", "flwr", "matplotlib"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)
