"""Time and memory of one local epoch of PF-GNN+ on the largest market.

`python -m studies speed markets_step` makes a market of 36,000 items and two million pairs (the paper's United States:
35,939 and 2,048,177), its degrees skewed, with 768 features an item. The market is propagated once; then an epoch, in which
as many triples are drawn as there are pairs, runs the client's own trainer: all of Eq 15 and 16, every item encoded and
clustered in every step. A step takes 131,072 triples; of the default 1,024 an epoch would have 1,954 steps, some 50 a
minute. The limits are 60 s on two cores and 4 GB. The table has the processor's time too, which other load on the machine
lengthens less. Prints a table and writes JSON.
"""

import math
import os
import resource
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from client.tasks.markets.data.graph import Graph, symmetric
from client.tasks.markets.networks import TripleSource
from client.trainers.pfgnn import MarketObjective, PFGNNTrainer
from client.training.stacks import Tensors
from client.training.steps import initialize_moments
from common.methods.pfgnn import PFGNN
from common.tasks.markets.model import MarketNetwork, Pooling, assignments, summarize, unpool
from common.tasks.markets.options import MarketsOptions
from studies.speed import timing

SECONDS, GIGABYTES = 60.0, 4.0


def generate(items: int, pairs: int, options: MarketsOptions, rng: np.random.Generator) -> TripleSource:
    """Return a market with pairs drawn by popularity, and random features of length 1.

    A pair's weight is the product of two popularities, rank^−½ each.
    """
    popularity = 1 / np.sqrt(np.arange(1, items + 1))
    keys: NDArray[np.int64] = np.zeros(0, np.int64)
    while len(keys) < pairs:
        a, b = np.sort(rng.choice(items, (2, pairs), p=popularity / popularity.sum()), axis=0)
        keys = np.union1d(keys, (a * items + b)[a < b])
    edges = np.stack(np.divmod(np.sort(rng.permutation(keys)[:pairs]), items), axis=1)
    features = rng.standard_normal((items, options.width), np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = Graph(np.arange(items), symmetric(edges, np.ones(pairs, np.float32), items))
    return TripleSource.of([graph], [features], options)


def begin(algorithm: PFGNN, options: MarketsOptions) -> Tensors:
    """Return parameters of a client that has trained before: with ξ, every term is in the epoch."""
    torch.manual_seed(0)
    pooling = Pooling(algorithm.clusters, shares_summary=True)
    network = MarketNetwork(options.width, options.embedding, variational=True, pooling=pooling)
    start = {n: p.detach().clone().unsqueeze(0) for n, p in network.named_parameters()}
    return {**start, "xi": torch.randn(start["xi"].shape)}


def epoch(market: TripleSource, algorithm: PFGNN, options: MarketsOptions, steps: int) -> dict[str, Any]:
    """Return seconds of an epoch, loss before and after, and the clusters' condition number at the end."""
    trainer, start = PFGNNTrainer(algorithm), begin(algorithm, options)
    before, busy = time.perf_counter(), time.process_time()
    generator = torch.Generator().manual_seed(0)
    descent = trainer.train([market], start, initialize_moments(algorithm, start), [generator], [False], steps)
    seconds, cpu_seconds = time.perf_counter() - before, time.process_time() - busy
    after = {n: p[0] for n, p in descent.params.items()}
    objective = MarketObjective(algorithm, market)
    z = objective.mean(after)
    c = assignments(z, after["kappa"], algorithm.tau)
    draw = objective.draw(options.embedding, torch.Generator().manual_seed(1))
    last = float(objective.fit(after, objective.encode(after, draw), draw))
    condition = unpool(c, summarize(c, z, algorithm.summary), algorithm.summary).condition
    loss = {"loss_before": float(descent.loss[0]), "loss_after": last}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, **loss, "condition": condition}


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "markets_step")
    parser.add_argument("--items", type=int, default=36_000)
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=131_072)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    algorithm, task = PFGNN(), MarketsOptions(batch=options.batch)
    steps = math.ceil(options.pairs / options.batch)
    rng = np.random.default_rng(0)
    market, made = timing.time_work(lambda: generate(options.items, options.pairs, task, rng))
    run = {"prepare_seconds": made, "steps": steps} | epoch(market, algorithm, task, steps)
    run["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    table = Table(
        "",
        "measured",
        "limit",
        title=f"{options.items:,} items, {options.pairs:,} pairs, {steps} steps of {options.batch:,} triples",
    )
    table.add_row("market made and propagated, s", f"{made:.1f}", "")
    table.add_row("one local epoch, s", f"{run['seconds']:.1f}", f"{SECONDS:.0f}")
    table.add_row("its time on the processor, s", f"{run['cpu_seconds']:.1f}", "")
    table.add_row("most memory, GB", f"{run['gigabytes']:.2f}", f"{GIGABYTES:.0f}")
    table.add_row("loss before and after", f"{run['loss_before']:.3f}, {run['loss_after']:.3f}", "")
    Console().print(table)
    about = {"items": options.items, "pairs": options.pairs, "batch": options.batch, "threads": options.threads}
    limits = {"seconds": SECONDS, "gigabytes": GIGABYTES}
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[1]}
    timing.write(options.out, {**about, **machine, "limits": limits, "run": run}, "torch")
