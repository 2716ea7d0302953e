"""Configuration, result, privacy statement and origin of one run, for the live page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.config.parse import parse
from common.errors import DataError, FedloomError
from deploy.report import text
from deploy.report.noise_cost import statement_of
from deploy.ui.run_files import read_config, read_file
from server.privacy_statement import statement
from server.result import Privacy, Result, result_from_json, result_to_json

MAX_CLIENTS = 1_000  # clients of one answer
MAX_EXAMPLES = 1_000_000  # bytes of examples.json


def read_detail(root: Path, run: str) -> dict[str, Any] | None:
    """Return one run as a JSON value; None if there is no such run."""
    if (config := read_config(root, run)) is None:
        return None
    result = _result(root, run)
    privacy = result.privacy if result else _expected_privacy(config)
    sentences = statement_of(result) if result else text.privacy(privacy) if privacy else None
    return {
        "id": run,
        "config": config,
        "result": _as_json(result) if result else None,
        "privacy": _describe(privacy, *sentences) if privacy and sentences else None,
        "origin": _origin(root, run),
        "has_examples": read_file(root, run, "examples.json", MAX_EXAMPLES) is not None,
    }


def _result(root: Path, run: str) -> Result | None:
    content = read_file(root, run, "result.json")
    try:
        return result_from_json(content) if content else None
    except DataError:
        return None


def _as_json(result: Result) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result_to_json(result))
    value["clients_total"] = len(value["clients"])
    value["clients"] = dict(list(value["clients"].items())[:MAX_CLIENTS])
    return value


def _expected_privacy(config: Mapping[str, Any]) -> Privacy | None:
    """Return the statement of a run before its end; None if its package or an option is missing here."""
    try:
        return statement(parse({key: value for key, value in config.items() if key != "resume"}), {}, 0)
    except FedloomError:
        return None


def _describe(privacy: Privacy, claim: str, terms: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the statement with its sentences; `exact` is True if updates are sent without noise."""
    unit = text.cost(privacy.account, 0).split()[0] if privacy.account else ""
    return {
        **asdict(privacy),
        "claim": claim,
        "terms": terms,
        "exact": privacy.epsilon is None,
        "cost": unit,
        "counted": text.counted(privacy.account) if privacy.account else "",
    }


def _origin(root: Path, run: str) -> dict[str, Any] | None:
    try:
        value = json.loads(read_file(root, run, "origin.json") or b"null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
