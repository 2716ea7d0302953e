"""Exported model: its metadata in the ONNX file, and its opening for answers, without torch."""

import base64
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from client.data.dataset import AnyDataset
from client.data.read import read_all
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common.arrays import Array, Arrays
from common.config.parse import from_json, to_json
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, FedloomError
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary
from deploy.serving.spec import ServedModel, Serving
from deploy.tasks.registry import DEPLOY_TASKS

FORMAT = "1"
"""Version of the keys."""

LOCAL_KEYS = ("catalogue", "federation.")
"""Options of a run that concern its machines, not its model."""


@dataclass(frozen=True)
class Document:
    """Metadata of an exported model.

    Args:
        run: Name of the run.
        config: Its configuration.
        vocabulary: Its vocabulary.
        statics: Summed statistics that enter the inputs.
        model_sha256: SHA-256 of the run's parameters.
        privacy: Privacy statement in one sentence.
        card: Model card.
        data: Table of one unit's own data; empty for a model without.
    """

    run: str
    config: RunConfig
    vocabulary: Vocabulary
    statics: Arrays
    model_sha256: str
    privacy: str
    card: Mapping[str, Any]
    data: str = ""

    def to_properties(self) -> dict[str, str]:
        """Return the metadata as texts."""
        sent: dict[str, Any] = json.loads(to_json(self.config))
        options = {key: value for key, value in sent.items() if not key.startswith(LOCAL_KEYS)}
        return {
            "fedloom": FORMAT,
            "run": self.run,
            "task": self.config.task,
            "catalogue_sha256": self.vocabulary.sha256(),
            "model_sha256": self.model_sha256,
            "privacy": self.privacy,
            "config": json.dumps(options, sort_keys=True),
            "catalogue": self.vocabulary.to_json(),
            "statics": base64.b64encode(save(self.statics)).decode() if self.statics else "",
            "card": json.dumps(self.card, ensure_ascii=False),
            "data": self.data,
        }


def document_of(properties: Mapping[str, str]) -> Document:
    """Return the metadata of a file; inverse of `to_properties`.

    Raises:
        DataError: The texts are not such metadata.
    """
    if properties.get("fedloom") != FORMAT:
        raise DataError("the file is no model of fedloom; write one with fedloom export-model")
    try:
        config = from_json(properties["config"])
        statics = load(base64.b64decode(properties["statics"])) if properties["statics"] else {}
        card = json.loads(properties["card"])
        text = properties["catalogue"]
        about = (properties["model_sha256"], properties["privacy"], card, properties["data"])
        vocabulary = read_vocabulary(config.task, text)
    except (KeyError, TypeError, ValueError, SafetensorError, FedloomError) as error:
        raise DataError(f"the metadata cannot be read ({error}); export the model again") from None
    if vocabulary.sha256() != properties["catalogue_sha256"] or not isinstance(card, dict):
        raise DataError("the metadata are damaged; export the model again")
    return Document(properties["run"], config, vocabulary, statics, *about)


EXTRA = "install it with: pip install 'fedloom[serving]'"


def open_model(path: Path, data: str = "", dialect: Dialect = DEFAULT_DIALECT) -> tuple[ServedModel, Serving, Document]:
    """Return an exported model, the task's answers, and the metadata of the file.

    Without a source of data, those of the file are read if it has any.

    Raises:
        ConfigError: The extra `serving` is not installed, or the task is not.
        DataError: The file or the data cannot be read.
    """
    session = _open_session(path)
    try:
        document = document_of(session.get_modelmeta().custom_metadata_map)
    except DataError as error:
        raise DataError(str(error), path) from None
    task, config = DEPLOY_TASKS[document.config.task], document.config
    if task.serving is None:
        raise ConfigError(f"task '{task.name}' declares no serving; install the version that exported {path}")
    names = [each.name for each in session.get_inputs()]

    def network(inputs: Arrays) -> Array:
        output: Array = session.run(None, {name: inputs[name] for name in names})[0]
        return output

    dataset = _read(document, data, dialect)
    model = ServedModel(document.run, config, document.vocabulary, document.statics, network, dataset)
    return model, task.serving.load(), document


def _open_session(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError(f"serve-model needs {error.name}; {EXTRA}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None
    except Exception as error:  # onnxruntime has no public root of its errors
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise DataError("not an ONNX file that can be run; write one with fedloom export-model", path) from None


def _read(document: Document, data: str, dialect: Dialect) -> AnyDataset | None:
    """Read the data of the option, or of the file under a private temporary name."""
    task, vocabulary = document.config.task, document.vocabulary
    if data:
        return read_all(task, data, vocabulary=vocabulary, dialect=dialect)
    if not document.data:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        path.write_text(document.data, "utf-8", newline="")
        return read_all(task, str(path), vocabulary=vocabulary)
