"""Files of an exported model: ONNX with metadata, and a model card beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from client.data.dataset import AnyDataset
from client.tasks.registry import CLIENT_TASKS
from common.arrays import sha256
from common.errors import ConfigError, DataError
from common.tasks.networks import label
from common.tasks.options import VARIANTS
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import count
from deploy.files import write_file
from deploy.pages.statement import statement_of
from deploy.pages.view import finite, in_order
from deploy.serving.load import Document
from deploy.tasks.spec import DeployTask, TrainedRun
from server.record.result import Result

CARD = "model-card"
"""Name of the model card beside the ONNX file, without suffix."""

PRIVATE = 0o600

RAW = "this file holds the model alone; fedloom recommend and forecast answer by {baselines} where held-out data prefer it"
"""Note on a model whose clients choose between it and baselines."""


def export_run(run: TrainedRun, task: DeployTask, result: Result, onnx: Path, unit: str, *, data: bool) -> list[Path]:
    """Write the ONNX file of a run and its model card; return the card as a page and as JSON.

    `unit` names the unit whose data enter the files, the first by default. With `data` the files are private.

    Raises:
        ConfigError: The model cannot be exported, or the file exists.
        DataError: The data cannot be read.
        RunError: The exported file computes other values than torch.
    """
    if task.serving is None:
        raise ConfigError(f"run '{run.name}' is of task {task.name}, which declares no export; export another run")
    if run.config.model not in VARIANTS:
        answers = f"fedloom recommend --run {run.name}"
        raise ConfigError(f"{label(run.config.model)} reads graphs, which ONNX export does not cover; use {answers}")
    if onnx.exists():
        raise ConfigError(f"{onnx} exists; remove it or choose another path")
    serving, option = task.serving.load(), task.serving.unit.name
    dataset = run.read("") if data else None
    if dataset is not None:
        if not dataset.units:
            raise DataError(f"the data have no {option}; give other data", run.data)
        dataset = replace(dataset, units=(run.unit(unit, option),))
    if run.config.first and not serving.adds_sums:
        answers = f"fedloom recommend --run {run.name}"
        raise ConfigError(f"run '{run.name}' adds a network to sums, and ONNX holds one of both; use {answers}")
    export = serving.export(run, dataset)
    notes = [*([f"parameters of {run.about}"] if run.about else []), *export.notes]
    if baselines := TASKS[run.config.task].baselines:
        notes.append(RAW.format(baselines=" or ".join(f"'{name}'" for name in baselines)))
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

    mode = PRIVATE if data else 0o644
    write_file(onnx, to_onnx(export.network, document.to_properties()), mode=mode)
    pages = {"md": as_markdown(card), "json": json.dumps(card, indent=1, ensure_ascii=False) + "\n"}
    for suffix, text in pages.items():
        write_file(onnx.with_name(f"{CARD}.{suffix}"), text.encode(), mode=mode, overwrite=True)
    return [onnx.with_name(f"{CARD}.{suffix}") for suffix in pages]


def _fingerprint(run: TrainedRun) -> str:
    """Return the SHA-256 of the run's parameters at the exported checkpoint; empty for models of clusters."""
    from common.models import parameters_of

    names = parameters_of(run.config, run.vocabulary)
    trained = {name: a for name, a in run.model.items() if name in names}
    return sha256(trained) if trained else ""


def _as_table(task: str, dataset: AnyDataset) -> str:
    """Return the data set as the text of a table that the task reads."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        CLIENT_TASKS[task].write(path, dataset)
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()


UNBOUNDED = "trained without noise: what it reveals of clients is not bounded"
PERSONAL = "contains what your data look like; do not hand on"
LICENCE = "software: Apache-2.0; model: as its trainers and the owners of the data agree, none is stated"


def make_card(
    result: Result, vocabulary: Vocabulary, limits: str, notes: Sequence[str], *, personal: bool
) -> dict[str, Any]:
    """Return the model card of a run as a JSON object.

    Args:
        result: Result of the run.
        vocabulary: Its vocabulary.
        limits: Uses for which the task's models are not made.
        notes: Sentences on the choice of parameters.
        personal: True if the file holds data of one unit.
    """
    metrics = finite(result.metrics)
    spec, hides = TASKS[result.task], result.privacy.epsilon is not None or result.privacy.trust == "helpers"
    return {
        "run": result.run,
        "task": result.task,
        "method": result.method,
        "model": result.model,
        "for": f"{spec.summary}.",
        "not_for": limits,
        "data": _data(result, vocabulary, hides_sizes=hides),
        "metrics": [
            {"key": m.key, "name": m.label, "value": metrics[m.key], "better": m.better, "meaning": m.meaning}
            for m in in_order(result.metrics)
        ],
        "verdict": result.verdict.text if result.verdict else "not measured",
        "simple": asdict(result.verdict) if result.verdict else None,
        "privacy": _privacy(result),
        "personal": PERSONAL if personal else "",
        "notes": list(notes),
        "versions": {**result.versions, "fedloom": version("fedloom")},
        "seed": result.seed,
        "rounds": result.rounds_done,
        "model_sha256": result.model_sha256,
        "catalogue_sha256": vocabulary.sha256(),
        "licence": LICENCE,
    }


def _privacy(result: Result) -> dict[str, Any]:
    """Return the privacy statement, word by word."""
    stated, (claim, terms) = result.privacy, statement_of(result)
    return {
        "statement": claim if stated.epsilon is not None else f"{claim} {UNBOUNDED[0].upper()}{UNBOUNDED[1:]}.",
        "terms": {heading: list(lines) for heading, lines in terms.items()},
        "unit": stated.unit,
        "mechanism": stated.mechanism,
        "epsilon": stated.epsilon,
        "delta": stated.delta,
        "not_covered": stated.uncovered,
    }


def as_markdown(card: Mapping[str, Any]) -> str:
    """Return the model card as a page."""
    warning = [f"**Personal: {card['personal']}.**", ""] if card["personal"] else []
    metrics = []
    for m in card["metrics"]:
        value = "–" if m["value"] is None else f"{m['value']:.4g}"
        metrics.append(f"| {m['name']} | {value} | {m['meaning']} |")
    terms = [f"- {heading}: {'; '.join(lines)}" for heading, lines in card["privacy"]["terms"].items()]
    lines = [
        f"# Model of run {card['run']}",
        "",
        *warning,
        f"Task {card['task']}, method {card['method']}, model {card['model']}, {count(card['rounds'], 'round')}.",
        "",
        *("## Purpose", "", card["for"], "", card["not_for"], ""),
        *("## Data", "", card["data"], ""),
        *("## Metrics", "", "| metric | final | meaning |", "|---|---|---|", *metrics, ""),
        *(f"Verdict: {card['verdict']}", ""),
        *("## Privacy", "", card["privacy"]["statement"], "", *terms, *([""] if terms else [])),
        *("## Origin", ""),
        *(f"- {name} {number}" for name, number in card["versions"].items()),
        f"- seed {card['seed']}",
        f"- parameters sha256 {card['model_sha256']}",
        f"- catalogue sha256 {card['catalogue_sha256']}",
        f"- licence: {card['licence']}",
        *(f"- {note}" for note in card["notes"]),
    ]
    return "\n".join(lines) + "\n"


def _data(result: Result, vocabulary: Vocabulary, *, hides_sizes: bool) -> str:
    """Describe the data by counts that the run has published, with those of records unless hidden."""
    records = sum(client.examples for client in result.clients.values())
    shown = "" if hides_sizes else f" with {count(records, 'training record')}"
    names = ", ".join(
        f"{len(values):,} {name.replace('_', ' ')}"
        for name, values in vocabulary.model_dump().items()
        if isinstance(values, list | tuple | dict) and values
    )
    return f"{count(len(result.clients), 'client')}{shown}; the data stayed with them. Public vocabulary: {names}."
