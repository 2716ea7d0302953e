"""Examples per second of SR-GNN's training step: fedloom's against the public reference's formulation.

`python -m studies speed sessions_step` trains both networks in turns, from the same parameters, on the same generated
examples with the same batch size, rate and L2 term. Fedloom's graphs are collated in NumPy; a batch holds prefixes of
similar length; the loss is `next_item_loss`; Adam is fused. The time to collate counts. `sessions_reference` describes the
reference. Sessions of both are cut to 20 clicks; longer padding would slow the reference. The ratio is the median over turns
of the two rates of a turn, since other load on the machine affects both. Prints a table and writes JSON.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

from client.tasks.sessions.learner import ExampleBatch, collate
from common.tasks.sessions.model import SRGNN, build_session_model
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks
from studies.sessions.loss import next_item_loss
from studies.speed import timing
from studies.speed.sessions_reference import ReferenceSessions, ReferenceSRGNN

BATCH, WIDTH, LONGEST = 100, 100, 20
RATE, L2 = 1e-3, 1e-5

Turn = Callable[[NDArray[np.int64]], float]
"""Training on the chosen examples, with the mean loss of its batches."""


@dataclass(frozen=True)
class Examples:
    """Prefixes and the click after each of them."""

    prefixes: Sequence[Clicks]
    targets: NDArray[np.int64]


def generate(count: int, items: int, rng: np.random.Generator) -> Examples:
    """Return examples of sessions with 4.2 clicks on average.

    Items follow Zipf's law; a fifth of the clicks is repeated.
    """
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


def fedloom(model: SRGNN, examples: Examples) -> Turn:
    """Return training in fedloom's formulation."""
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
    """Return batches of similar length, in the order of the first example of each."""
    lengths = np.array([len(examples.prefixes[i]) for i in chosen])
    cut = np.split(np.argsort(lengths, kind="stable"), range(BATCH, len(chosen), BATCH))
    in_order = sorted(cut, key=lambda places: int(places[0]))
    return [
        collate([examples.prefixes[i] for i in rows], examples.targets[rows].tolist(), LONGEST)
        for rows in (chosen[places] for places in in_order)
    ]


def reference(model: ReferenceSRGNN, examples: Examples) -> Turn:
    """Return training in the reference's formulation."""
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
    """Return both networks with the same parameters."""
    model, baseline = build_session_model(items, SessionsOptions(hidden=WIDTH)), ReferenceSRGNN(items, WIDTH)
    baseline.load_state_dict(model.state_dict())
    assert isinstance(model, SRGNN)
    return model, baseline


def measure(items: int, steps: int, turns: int) -> tuple[timing.Times, float]:
    """Return examples per second of each way by turn, and the median ratio of fedloom to reference."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    examples = generate(4 * steps * BATCH, items, rng)
    model, baseline = twins(items)
    ways = {"reference": reference(baseline, examples), "fedloom": fedloom(model, examples)}
    chosen = [rng.permutation(len(examples.prefixes))[: steps * BATCH] for _ in range(turns + 1)]
    work = {name: partial(_next_turn, way, iter(chosen)) for name, way in ways.items()}
    seconds = timing.time_in_turns(work, turns)
    rates = {name: [steps * BATCH / taken for taken in times] for name, times in seconds.items()}
    return rates, timing.median_ratio(rates["fedloom"], rates["reference"])


def _next_turn(way: Turn, chosen: Iterator[NDArray[np.int64]]) -> float:
    return way(next(chosen))


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "sessions_step")
    parser.add_argument("--items", type=int, nargs="+", default=[17_376])
    parser.add_argument("--steps", type=int, default=10, help="batches of a turn")
    parser.add_argument("--repetitions", type=int, default=15, help="turns")
    options = parser.parse_args()
    threads = timing.use_few_threads()

    table = Table("items", "reference", "fedloom", "times", title=f"SR-GNN, examples/s, batch {BATCH}, d {WIDTH}")
    results = []
    for items in options.items:
        rates, ratio = measure(items, options.steps, options.repetitions)
        median = {name: statistics.median(each) for name, each in rates.items()}
        table.add_row(f"{items:,}", *(f"{median[name]:,.0f}" for name in ("reference", "fedloom")), f"{ratio:.2f}")
        results.append({"items": items, "examples_per_second": rates, "median": median, "ratio": ratio})
    Console().print(table)
    result = {"batch": BATCH, "width": WIDTH, "threads": threads, "runs": results}
    timing.write(options.out, result, "torch", "numpy")
