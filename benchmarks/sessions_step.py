"""Examples per second of SR-GNN's training step: fedloom's against the public reference's formulation.

`python -m benchmarks.sessions_step` trains both networks, from the same parameters, on the same generated examples with the
same batch size, rate and L2 term, taking turns. Fedloom's graphs are collated once, in NumPy, for the whole set; a batch holds
prefixes of like length; the loss is `next_item_loss`; Adam is fused. The time to collate counts, as if it were one epoch. The
reference is described in `sessions_reference`. Sessions of both are cut to 20 clicks, which spares the reference the padding
to a set's longest session. The
ratio is the median over turns of the two rates of a turn, so that another load on the machine hits both. Prints a table and
writes JSON.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

from benchmarks.sessions.loss import next_item_loss
from benchmarks.sessions_reference import ReferenceSessions, ReferenceSRGNN
from client.tasks.sessions.data.graphs import ExampleBatch, collate
from common.tasks.sessions.model import SRGNN, build_session_model
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks

BATCH, WIDTH, LONGEST = 100, 100, 20
RATE, L2 = 1e-3, 1e-5

Turn = Callable[[NDArray[np.int64]], float]
"""Trains on the chosen examples, returns the mean loss of its batches."""


@dataclass(frozen=True)
class Examples:
    """Prefixes and the click after each."""

    prefixes: Sequence[Clicks]
    targets: NDArray[np.int64]


def generated(count: int, items: int, rng: np.random.Generator) -> Examples:
    """Examples of sessions with 4.2 clicks on average, items by Zipf's law, a fifth of the clicks repeating one before."""
    prefixes: list[Clicks] = []
    targets: list[int] = []
    popularity = 1 / np.arange(1, items + 1)
    drawn = iter(rng.choice(items, 2 * count, p=popularity / popularity.sum()))
    while len(prefixes) < count:
        session = [int(next(drawn))]
        for _ in range(min(int(rng.geometric(1 / 3.23)), LONGEST - 1)):
            session.append(int(rng.choice(session)) if rng.random() < 0.2 else int(next(drawn)))
        prefixes += [np.array(session[:k], np.int64) for k in range(1, len(session))]
        targets += session[1:]
    return Examples(prefixes[:count], np.array(targets[:count]))


def ours(model: SRGNN, examples: Examples) -> Turn:
    """Fedloom's way."""
    adam = torch.optim.Adam(model.parameters(), RATE, weight_decay=L2, fused=True)

    def train(chosen: NDArray[np.int64]) -> float:
        losses = []
        for batch in batches(examples, chosen):
            adam.zero_grad()
            vectors = model.vectors(*batch.graph)
            loss = next_item_loss(vectors, model.embedding.weight, batch.target).mean()
            torch.autograd.backward(loss)
            adam.step()
            losses.append(loss.item())
        return statistics.mean(losses)

    return train


def batches(examples: Examples, chosen: NDArray[np.int64]) -> list[ExampleBatch]:
    """Batches of like length, in the order in which the first of each was chosen."""
    lengths = np.array([len(examples.prefixes[i]) for i in chosen])
    cut = np.split(np.argsort(lengths, kind="stable"), range(BATCH, len(chosen), BATCH))
    by_chance = sorted(cut, key=lambda places: int(places[0]))
    return [
        collate([examples.prefixes[i] for i in rows], examples.targets[rows].tolist(), LONGEST)
        for rows in (chosen[places] for places in by_chance)
    ]


def theirs(model: ReferenceSRGNN, examples: Examples) -> Turn:
    """The reference's way."""
    adam = torch.optim.Adam(model.parameters(), RATE, weight_decay=L2)
    sessions = ReferenceSessions(examples.prefixes, examples.targets.tolist())

    def train(chosen: NDArray[np.int64]) -> float:
        losses = []
        for rows in np.split(chosen, range(BATCH, len(chosen), BATCH)):
            adam.zero_grad()
            data = sessions.slice(rows)
            loss = cross_entropy(model(data), torch.tensor(data[-1]))
            torch.autograd.backward(loss)
            adam.step()
            losses.append(loss.item())
        return statistics.mean(losses)

    return train


def twins(items: int) -> tuple[SRGNN, ReferenceSRGNN]:
    """Both networks with the same parameters."""
    model, reference = build_session_model(items, SessionsOptions(hidden=WIDTH)), ReferenceSRGNN(items, WIDTH)
    reference.load_state_dict(model.state_dict())
    assert isinstance(model, SRGNN)
    return model, reference


def measure(items: int, steps: int, repetitions: int) -> dict[str, list[float]]:
    """Examples per second of each way, in turns; one turn goes before them."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    examples = generated(4 * steps * BATCH, items, rng)
    model, reference = twins(items)
    ways = {"reference": theirs(reference, examples), "fedloom": ours(model, examples)}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(repetitions + 1):
        chosen = rng.permutation(len(examples.prefixes))[: steps * BATCH]
        for name, way in ways.items():
            start = time.perf_counter()
            way(chosen)
            if repetition:
                rates[name].append(len(chosen) / (time.perf_counter() - start))
    return rates


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--items", type=int, nargs="+", default=[17_376])
    arguments.add_argument("--steps", type=int, default=10, help="batches of a turn")
    arguments.add_argument("--repetitions", type=int, default=15, help="turns")
    arguments.add_argument("--out", type=Path, default=Path("docs/results/sessions_step.json"))
    options = arguments.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    table = Table("items", "reference", "fedloom", "times", title=f"SR-GNN, examples/s, batch {BATCH}, d {WIDTH}")
    results = []
    for items in options.items:
        rates = measure(items, options.steps, options.repetitions)
        median = {name: statistics.median(all_of) for name, all_of in rates.items()}
        turns = zip(rates["fedloom"], rates["reference"], strict=True)
        ratio = statistics.median(fast / slow for fast, slow in turns)
        table.add_row(f"{items:,}", *(f"{median[name]:,.0f}" for name in ("reference", "fedloom")), f"{ratio:.2f}")
        results.append({"items": items, "examples_per_second": rates, "median": median, "ratio": ratio})
    Console().print(table)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    result = {"batch": BATCH, "width": WIDTH, "threads": torch.get_num_threads(), "runs": results, "versions": versions}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
