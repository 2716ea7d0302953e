"""Exported model opened for answers, without torch."""

import tempfile
from pathlib import Path
from typing import Any

from client.data.dataset import AnyDataset
from client.data.read import read_all
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.inference.network import Network
from common.arrays import Array, Arrays
from common.errors import ConfigError, DataError
from deploy.model_service.document import Document, document_of
from deploy.model_service.spec import ServedModel, Serving
from deploy.tasks.registry import DEPLOY_TASKS

EXTRA = "install it with: pip install 'fedloom[serving]'"


def open_model(path: Path, data: str = "", dialect: Dialect = DEFAULT_DIALECT) -> tuple[ServedModel, Serving, Document]:
    """Return an exported model, the task's answers, and the metadata of the file.

    Args:
        path: ONNX file.
        data: Source of data; empty for those of the file, if it has any.
        dialect: Columns and forms of the data.

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
    dataset = _read(document, data, dialect)
    network = _as_network(session)
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


def _as_network(session: Any) -> Network:
    names = [each.name for each in session.get_inputs()]

    def run(inputs: Arrays) -> Array:
        output: Array = session.run(None, {name: inputs[name] for name in names})[0]
        return output

    return run


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
