"""How long PF-GNN+ takes for one local epoch on the largest market, and in how much memory.

`python -m benchmarks.markets_step` makes a market of 36,000 items and two million pairs (the paper's United States: 35,939
and 2,048,177), its degrees skewed, with 768 features an item. The market is propagated once; then an epoch, in which as
many triples are drawn as there are pairs, runs the client's own trainer: all of Eq 15 and 16, every item encoded and clustered
in every step. A step takes 131,072 triples; of the default 1,024 an epoch would have 1,954 steps, some 50 a minute.
The limits asked for: 60 s on two cores and 4 GB. Beside the seconds stands the processor's time, which another load on the
machine lengthens less. Prints a table and writes JSON.
"""

import argparse
import json
import math
import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor

from client.stacked_tensors import Tensors
from client.tasks.markets.data.graph import Graph, symmetric
from client.tasks.markets.triples import TripleSource
from client.trainers.optimizers import fresh_moments
from client.trainers.pfgnn import PFGNNTrainer
from client.trainers.pfgnn_objective import Objective
from common.methods.pfgnn import PFGNN
from common.tasks.markets.models.pooling import assignments, summarize, unpool
from common.tasks.markets.models.sgc import MarketNetwork, Pooling
from common.tasks.markets.options import MarketsOptions

SECONDS, GIGABYTES = 60.0, 4.0


@dataclass(frozen=True)
class Synthetic:
    """A market without a federation around it."""

    source: TripleSource

    @property
    def features(self) -> Tensor:
        """X, n × d."""
        return self.source.features

    @property
    def propagated(self) -> Tensor:
        """S^m X, n × d."""
        return self.source.propagated

    @property
    def pairs(self) -> Tensor:
        """Each pair once, E × 2."""
        return self.source.pairs

    def triples(self, generator: torch.Generator) -> Tensor:
        """See `TripleSource.draw`."""
        return self.source.draw(generator)


def generated(items: int, pairs: int, options: MarketsOptions, rng: np.random.Generator) -> Synthetic:
    """Pairs by the product of two popularities, rank^−½ each; features random, of length 1."""
    popularity = 1 / np.sqrt(np.arange(1, items + 1))
    keys: NDArray[np.int64] = np.zeros(0, np.int64)
    while len(keys) < pairs:
        a, b = np.sort(rng.choice(items, (2, pairs), p=popularity / popularity.sum()), axis=0)
        keys = np.union1d(keys, (a * items + b)[a < b])
    edges = np.stack(np.divmod(np.sort(rng.permutation(keys)[:pairs]), items), axis=1)
    features = rng.standard_normal((items, options.width), np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = Graph(np.arange(items), symmetric(edges, np.ones(pairs, np.float32), items))
    return Synthetic(TripleSource.of([graph], [features], options))


def begin(algorithm: PFGNN, options: MarketsOptions) -> Tensors:
    """Parameters of a client that has trained before: ξ known, so that every term is in the epoch."""
    torch.manual_seed(0)
    pooling = Pooling(algorithm.clusters, shares_summary=True)
    network = MarketNetwork(options.width, options.embedding, variational=True, pooling=pooling)
    start = {n: p.detach().clone().unsqueeze(0) for n, p in network.named_parameters()}
    return {**start, "xi": torch.randn(start["xi"].shape)}


def epoch(market: Synthetic, algorithm: PFGNN, options: MarketsOptions, steps: int) -> dict[str, Any]:
    """Seconds of an epoch, its loss before and after, and how well the clusters can be told apart at the end."""
    trainer, start = PFGNNTrainer(algorithm), begin(algorithm, options)
    before, busy = time.perf_counter(), time.process_time()
    generator = torch.Generator().manual_seed(0)
    descent = trainer.train([market], start, fresh_moments(algorithm, start), [generator], [False], steps)
    seconds, cpu_seconds = time.perf_counter() - before, time.process_time() - busy
    after = {n: p[0] for n, p in descent.params.items()}
    objective = Objective(algorithm, market)
    z = objective.mean(after)
    c = assignments(z, after["kappa"], algorithm.tau)
    draw = objective.draw(options.embedding, torch.Generator().manual_seed(1))
    last = float(objective.fit(after, objective.encode(after, draw), draw))
    condition = unpool(c, summarize(c, z, algorithm.summary), algorithm.summary).condition
    loss = {"loss_before": float(descent.loss[0]), "loss_after": last}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, **loss, "condition": condition}


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--items", type=int, default=36_000)
    arguments.add_argument("--pairs", type=int, default=2_000_000)
    arguments.add_argument("--batch", type=int, default=131_072)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--out", type=Path, default=Path("docs/results/markets_step.json"))
    asked = arguments.parse_args()
    torch.set_num_threads(asked.threads)

    algorithm, options = PFGNN(), MarketsOptions(batch=asked.batch)
    steps = math.ceil(asked.pairs / asked.batch)
    before = time.perf_counter()
    market = generated(asked.items, asked.pairs, options, np.random.default_rng(0))
    made = time.perf_counter() - before
    run = {"prepare_seconds": made, "steps": steps} | epoch(market, algorithm, options, steps)
    run["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    table = Table(
        "",
        "measured",
        "limit",
        title=f"{asked.items:,} items, {asked.pairs:,} pairs, {steps} steps of {asked.batch:,} triples",
    )
    table.add_row("market made and propagated, s", f"{made:.1f}", "")
    table.add_row("one local epoch, s", f"{run['seconds']:.1f}", f"{SECONDS:.0f}")
    table.add_row("its time on the processor, s", f"{run['cpu_seconds']:.1f}", "")
    table.add_row("most memory, GB", f"{run['gigabytes']:.2f}", f"{GIGABYTES:.0f}")
    table.add_row("loss before and after", f"{run['loss_before']:.3f}, {run['loss_after']:.3f}", "")
    Console().print(table)
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    about = {"items": asked.items, "pairs": asked.pairs, "batch": asked.batch, "threads": asked.threads}
    limits = {"seconds": SECONDS, "gigabytes": GIGABYTES}
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[1]}
    result = {**about, **machine, "limits": limits, "run": run, "versions": versions}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
