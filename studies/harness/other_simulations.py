"""Simulations beside the population path: cohorts of 32 with single replies, and Flower's own."""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

Measure = Callable[..., dict[str, Any]]

OTHERS = {
    "today": (["--together", "32", "--replies", "single"], "ms_cpu_per_update", "mb_per_client"),
    "flower": (["--path", "flower"], "seconds_per_round", "peak_mb"),
}
"""Other paths: options that measure one, and what is compared.

Flower's simulation works in processes of its own.
"""


def compare(options: argparse.Namespace, measure: Measure) -> dict[str, Any]:
    """Measure the largest number of clients by each path in turns; print and return the ratios.

    Args:
        options: Of the command.
        measure: Measures a number of clients in a process of its own, with further options.
    """
    clients = options.clients[-1]
    turns = [
        [measure(clients), *(measure(clients, *OTHERS[path][0]) for path in options.against)]
        for _ in range(options.turns)
    ]
    found: dict[str, Any] = {"clients": clients, "rows": turns}
    for k, path in enumerate(options.against, 1):
        found[path] = {kind: [turn[k][kind] / turn[0][kind] for turn in turns] for kind in OTHERS[path][1:]}
        times, memory = map(statistics.median, found[path].values())
        print(f"Path `{path}`: {times:.2f} times the time, {memory:.2f} times the memory")
    return found
