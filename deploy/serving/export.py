"""Files of an exported model: ONNX with metadata, and a model card beside it."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from client.data.dataset import AnyDataset
from client.tasks.registry import CLIENT_TASKS
from common.arrays import sha256
from common.errors import ConfigError, DataError
from common.tasks.registry import TASKS
from common.tasks.spec import Comparison
from deploy.files import write_file
from deploy.serving.card import as_markdown, make_card
from deploy.serving.load import Document
from deploy.tasks.run import find_unit
from deploy.tasks.spec import DeployTask, TrainedRun

if TYPE_CHECKING:
    from server.record.result import Result

CARD = "model-card"
"""Name of the model card beside the ONNX file, without suffix."""

PRIVATE = 0o600

RAW = (
    "answers are those of the model alone; where noise left it no better than '{name}' on a client's held-out data, recommend"
    " and forecast answer by '{name}'"
)
"""Note on a model with noise whose clients choose between it and the baseline."""


@dataclass(frozen=True)
class Exported:
    """Written files, and the model card.

    Args:
        onnx: ONNX file.
        pages: Model card as a page and as JSON.
        personal: True if the files hold data of one unit.
        size: Bytes of the ONNX file.
    """

    onnx: Path
    pages: tuple[Path, Path]
    personal: bool
    size: int


def export_run(run: TrainedRun, task: DeployTask, result: "Result", onnx: Path, unit: str, *, data: bool) -> Exported:
    """Write the ONNX file of a run and its model card.

    Args:
        run: Run with the model to export.
        task: Its task.
        result: Its result.
        onnx: Path of the new file.
        unit: Name of the unit whose data enter the file; empty for the first.
        data: True if data of a unit enter the file.

    Raises:
        ConfigError: The model cannot be exported, or the file exists.
        DataError: The data cannot be read.
        RunError: The exported file computes other values than torch.
    """
    if task.serving is None:
        raise ConfigError(f"run '{run.name}' is of task {task.name}, which declares no export; export another run")
    if onnx.exists():
        raise ConfigError(f"{onnx} exists; remove it or choose another path")
    serving, dataset = task.serving.load(), _of_unit(run, unit, task.serving.unit.name) if data else None
    export = serving.export(run, dataset)
    notes = [f"parameters of {run.about}"] if run.about else []
    notes += [*export.notes, *([RAW.format(name=answering.baseline)] if (answering := _answering(run)) else [])]
    result = replace(result, model_sha256=_fingerprint(run) or result.model_sha256)
    card = make_card(result, export.vocabulary, serving.limits, notes, personal=data)
    document = Document(
        run=run.name,
        config=export.config,
        vocabulary=export.vocabulary,
        statics=export.statics,
        model_sha256=result.model_sha256,
        privacy=card["privacy"]["statement"],
        card=card,
        data=_as_table(task.name, dataset) if dataset else "",
    )
    from deploy.serving.onnx_export import to_onnx  # after every refusal: it imports torch

    content = to_onnx(export.network, document.to_properties())
    mode = PRIVATE if data else 0o644
    write_file(onnx, content, mode=mode)
    pages = onnx.with_name(f"{CARD}.md"), onnx.with_name(f"{CARD}.json")
    write_file(pages[0], as_markdown(card).encode(), mode=mode, overwrite=True)
    write_file(pages[1], json.dumps(card, indent=1, ensure_ascii=False).encode() + b"\n", mode=mode, overwrite=True)
    return Exported(onnx, pages, data, len(content))


def _answering(run: TrainedRun) -> Comparison | None:
    """Return the comparison by which clients choose under noise; None if they use the model as it is."""
    comparison = TASKS[run.config.task].comparison
    return comparison if run.config.privacy.unit != "none" and comparison and comparison.answers else None


def _fingerprint(run: TrainedRun) -> str:
    """Return the SHA-256 of the run's parameters at the exported checkpoint; empty for models of clusters."""
    from common.models import build_model, parameters

    spec = TASKS[run.config.task]
    names = parameters(build_model(spec, run.config.task_run(spec, run.vocabulary)))
    own = {name: a for name, a in run.model.items() if name in names}
    return sha256(own) if own else ""


def _of_unit(run: TrainedRun, name: str, option: str) -> AnyDataset:
    """Return the data set of one unit."""
    dataset = run.read("")
    if not dataset.units:
        raise DataError(f"the data have no {option}; give other data", run.data)
    return replace(dataset, units=(find_unit(dataset, name, run.data, option),))


def _as_table(task: str, dataset: AnyDataset) -> str:
    """Return the data set as the text of a table that the task reads."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        CLIENT_TASKS[task].write(path, dataset)
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
