"""DP-SGD against plain SGD on the same homes: what per-record clipping costs.

`python -m benchmarks.record` takes local steps of the rules task over 250 demo homes, a record each, in turns: the plain
gradient of their mean loss, and `private_gradient`, which clips each home's and adds noise; drawing mask and noise counts.
The ratio is the median over turns of the two times of a turn. The limit asked for is 3. Prints a table and writes JSON.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.func import grad_and_value

from client.privacy.dp_sgd import draws, private_gradient
from client.stacked_tensors import Tensors
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.learner import RulesLearner
from common.config.parse import parse
from common.models import parameters, tensors
from common.privacy.randomness import fresh_generator
from common.tasks.rules.demo import demo_catalogue
from common.tasks.rules.task import TASK
from common.wire.messages import TrainRequest

LIMIT = 3.0
"""Largest ratio."""

Turn = Callable[[], None]
"""Takes some steps from the same start."""


def turns(model: str, homes: int, steps: int) -> dict[str, Turn]:
    """The two ways to take `steps` steps."""
    config = parse({"method": "fedavg", "task": "rules", "model": model})
    learner = RulesLearner(config.task_run(TASK, demo_catalogue()), Homes(demo_homes(0, homes, 0), demo_catalogue()))
    start = tensors(parameters(learner.module))
    batch = learner.batch(TrainRequest(1, "", {}))
    masks = partial(learner.step_inputs, steps, torch.Generator().manual_seed(0))
    private = partial(draws, start, len(batch["x"]), learner.examples, steps, clip=1.0, multiplier=1.0, sample=0.5)

    def noisy() -> Tensors:
        return {**masks(), **private(generator=fresh_generator())}

    return {
        "plain": partial(_descend, grad_and_value(learner.loss), start, batch, masks, steps),
        "private": partial(_descend, private_gradient(learner.loss, {"offset"}), start, batch, noisy, steps),
    }


def _descend(
    gradient: Callable[[Tensors, Tensors, Tensors], tuple[Tensors, torch.Tensor]],
    params: Tensors,
    batch: Tensors,
    drawn: Callable[[], Tensors],
    steps: int,
) -> None:
    noise = drawn()
    for t in range(steps):
        direction, _ = gradient(params, batch, {n: masks[t] for n, masks in noise.items()})
        params = {n: p - 0.1 * direction[n] for n, p in params.items()}


def measure(ways: dict[str, Turn], repetitions: int) -> dict[str, list[float]]:
    """Seconds of each turn of each way; one turn goes before them."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(repetitions + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if repetition:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--homes", type=int, default=250)
    arguments.add_argument("--steps", type=int, default=5)
    arguments.add_argument("--repetitions", type=int, default=15, help="turns")
    arguments.add_argument("--out", type=Path, default=Path("docs/results/record.json"))
    options = arguments.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    table = Table(
        "model", "plain, ms a step", "private, ms a step", "times", title=f"{options.homes} homes, limit {LIMIT:g}"
    )
    runs = []
    for model in ("default", "paper"):
        seconds = measure(turns(model, options.homes, options.steps), options.repetitions)
        turn = zip(seconds["private"], seconds["plain"], strict=True)
        ratio = statistics.median(private / plain for private, plain in turn)
        step = {name: 1e3 * statistics.median(values) / options.steps for name, values in seconds.items()}
        table.add_row(model, f"{step['plain']:.1f}", f"{step['private']:.1f}", f"{ratio:.2f}")
        runs.append({"model": model, "step_ms": step, "ratio": ratio})
    Console().print(table)
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    result = {"homes": options.homes, "steps": options.steps, "limit": LIMIT, "runs": runs, "versions": versions}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
