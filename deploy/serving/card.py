"""Model card: purpose, data, metrics, privacy statement and origin of an exported model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from math import isfinite
from typing import Any

from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import count
from deploy.pages.view import in_order, statement_of
from server.record.result import Result

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
    spec, noisy = TASKS[result.task], result.privacy.epsilon is not None
    card: dict[str, Any] = {
        "run": result.run,
        "task": result.task,
        "method": result.method,
        "model": result.model,
        "for": f"{spec.summary}.",
        "not_for": limits,
        "data": _data(result, vocabulary, noisy=noisy),
        "metrics": [
            {
                "key": m.key,
                "name": m.label,
                "value": _finite(result.metrics[m.key]),
                "better": m.better,
                "meaning": m.meaning,
            }
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
    return card


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
    metrics = [f"| {m['name']} | {_number(m['value'])} | {m['meaning']} |" for m in card["metrics"]]
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


def _data(result: Result, vocabulary: Vocabulary, *, noisy: bool) -> str:
    """Describe the data by counts that the run has published; with noise, without numbers of records."""
    records = sum(client.examples for client in result.clients.values())
    shown = "" if noisy else f" with {count(records, 'training record')}"
    names = ", ".join(
        f"{len(values):,} {name.replace('_', ' ')}"
        for name, values in vocabulary.model_dump().items()
        if isinstance(values, list | tuple | dict) and values
    )
    return f"{count(len(result.clients), 'client')}{shown}; the data stayed with them. Public vocabulary: {names}."


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
