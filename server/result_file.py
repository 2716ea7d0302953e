"""Files of a result: result.json, and clients.safetensors for runs of many clients."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.arrays import Array
from common.errors import DataError
from common.files import write_atomically
from server import tensor_file
from server.events import Metrics
from server.result import ClientResult, Result, result_from_json, result_to_json

RESULT, CLIENTS = "result.json", "clients.safetensors"

MANY = 10_000
"""Maximum number of clients whose results are in result.json."""

LEVELS = {"min": 0, "p1": 1, "p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95, "p99": 99, "max": 100}
"""Name of a quantile -> its percentage."""

EXAMPLES, VALUES = "examples", "values"


def write_result(folder: Path, result: Result) -> None:
    """Write a result; of more than `MANY` clients, result.json has quantiles only."""
    if len(result.clients) > MANY:
        examples, values, metrics = _table(result.clients)
        about = {"clients": json.dumps([*result.clients]), "metrics": json.dumps(metrics)}
        write_atomically(folder / CLIENTS, tensor_file.dump({EXAMPLES: examples, VALUES: values}, about))
        spread = {EXAMPLES: _spread(examples), **{m: _spread(values[:, k]) for k, m in enumerate(metrics)}}
        result = replace(result, clients={}, spread=spread)
    write_atomically(folder / RESULT, result_to_json(result))


def read_result(folder: Path) -> Result | None:
    """Return a result with all clients; None if the run has not ended or was killed.

    Raises:
        DataError: result.json is torn, or the table fits no result.
        StateError: The table is missing or damaged.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    result = result_from_json(path.read_bytes())
    return replace(result, clients=_read_table(folder / CLIENTS)) if result.spread else result


def _table(clients: Mapping[str, ClientResult]) -> tuple[Array, Array, list[str]]:
    """Return examples K, metrics K × M with NaN for absent ones, and the names of the M metrics."""
    metrics = sorted({name for one in clients.values() for name in one.metrics})
    values = np.array([[one.metrics.get(name, np.nan) for name in metrics] for one in clients.values()], np.float32)
    return np.array([one.examples for one in clients.values()], np.int64), values, metrics


def _read_table(path: Path) -> dict[str, ClientResult]:
    arrays, about = tensor_file.load(path)
    try:
        names, metrics = json.loads(about["clients"]), json.loads(about["metrics"])
        rows = zip(names, arrays[EXAMPLES].tolist(), arrays[VALUES].tolist(), strict=True)
        return {
            name: ClientResult(
                examples=examples,
                metrics={m: v for m, v in zip(metrics, values, strict=True) if not np.isnan(v)},
            )
            for name, examples, values in rows
        }
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path} is no table of clients") from None


def _spread(values: Array) -> Metrics:
    """Return quantiles of the measured values; empty if there are none."""
    measured = values[~np.isnan(values)]
    if not measured.size:
        return {}
    return {name: float(q) for name, q in zip(LEVELS, np.percentile(measured, [*LEVELS.values()]), strict=True)}
