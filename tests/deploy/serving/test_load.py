"""Files that are served, and tokens: broken ones are refused with a sentence."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.tasks.registry import demo_vocabulary
from deploy.commands.serve_model import read_token
from deploy.serving.load import Document, document_of, open_model


def write_identity(path: Path, properties: dict[str, str]) -> Path:
    """Write an ONNX file that returns its input."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(model, properties)
    onnx.save(model, path)
    return path


def document(task: str) -> Document:
    config = parse({"task": task, "method": "fedavg", "run-id": "r1", "catalogue": "demo"})
    return Document("r1", config, demo_vocabulary(task), {}, "ab", "No guarantee.", {"run": "r1"})


def test_metadata_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = document("rules")
    model, serving, read = open_model(write_identity(tmp_path / "m.onnx", written.to_properties()))
    assert (read.vocabulary, read.privacy, read.card) == (written.vocabulary, written.privacy, written.card)
    assert read.config.task_options == written.config.task_options
    assert serving.route == "recommend"
    assert model.dataset is None


def test_paths_of_the_server_stay_out_of_the_metadata() -> None:
    config = parse({"task": "rules", "method": "fedavg", "run-id": "r1", "catalogue": "/home/anna/catalogue.json"})
    whole = Document("r1", config, demo_vocabulary("rules"), {}, "", "", {})
    assert "anna" not in str(whole.to_properties())


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08" * 1000, bytes(range(256)) * 50])
def test_a_file_that_is_no_onnx_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"broken\.onnx: (not an ONNX file|the file is no model of fedloom)"):
        open_model(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        open_model(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    "change",
    [
        {"fedloom": "9"},
        {"config": "{"},
        {"config": '{"task": "no such task"}'},
        {"catalogue": "{}"},
        {"catalogue_sha256": "00"},
        {"statics": "?"},
        {"statics": "AAAA"},
        {"card": "[]"},
    ],
)
def test_damaged_metadata_are_refused(tmp_path: Path, change: dict[str, str]) -> None:
    path = write_identity(tmp_path / "m.onnx", document("rules").to_properties() | change)
    with pytest.raises(DataError, match=r"m\.onnx: .*fedloom|metadata|vocabulary"):
        open_model(path)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no model of fedloom"):
        open_model(write_identity(tmp_path / "m.onnx", {}))


@pytest.mark.parametrize("key", ["config", "catalogue", "statics", "card", "data", "privacy"])
def test_a_missing_part_is_refused(key: str) -> None:
    properties = document("sessions").to_properties()
    del properties[key]
    with pytest.raises(DataError, match="metadata"):
        document_of(properties)


def test_a_token_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    first, place = read_token(path)
    assert read_token(path) == (first, str(path)) == (first, place)
    assert len(first) >= 32
    assert path.stat().st_mode & 0o077 == 0


def test_a_token_that_others_can_read_or_guess_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text("x" * 40)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_token(path)
    monkeypatch.setenv("FEDLOOM_TOKEN", "short")
    with pytest.raises(ConfigError, match="16 or more"):
        read_token(None)
    monkeypatch.setenv("FEDLOOM_TOKEN", "long-enough-for-a-token")
    assert read_token(None) == ("long-enough-for-a-token", "$FEDLOOM_TOKEN")
