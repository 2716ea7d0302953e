"""Comparison of a finished run with each client alone, and with what clients of this machine measured."""

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from flwr.app import Message

from client.data.dataset import AnyDataset
from client.session import Session
from client.training.comparison import MEASURED, Measured, from_document, paired_sums, values
from client.training.participant import TOGETHER
from common.config.parse import configure_alone
from common.config.run import RunConfig
from common.errors import BudgetSpentError, FedloomError
from common.tasks.registry import TASKS
from common.tasks.spec import SIMPLE
from common.wire.messages import TRAIN, EvaluateReply
from deploy.cli.output import console
from deploy.federation.start import ClientSpec
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid
from server.aggregation.metrics import Evaluation, PairedSums, pool_sums, summarize
from server.record.result import Result
from server.record.verdict import compare_alone, floor_of, judge_run
from server.run import run


def read_measured(specs: Sequence[ClientSpec], run: str) -> dict[str, Measured]:
    """Return client -> its measurement of the finished model, for clients that stored one."""
    found: dict[str, Measured] = {}
    for spec in specs:
        paths: list[Path] = sorted((spec.state or spec.home / "state").glob(f"{spec.name}/*/{run}/{MEASURED}"))
        if paths:
            found[spec.name] = from_document(max(paths, key=lambda path: path.stat().st_mtime).read_bytes())
    return found


def with_local_metrics(result: Result, measured: Mapping[str, Measured]) -> Result:
    """Return the result with metrics of this machine's own clients, if the server received none."""
    if result.metrics or not measured:
        return result
    local = pool_measured(result.task, measured)
    sums = local.paired.get(SIMPLE, PairedSums())
    verdict = result.verdict or judge_run(result.task, local.metrics, result.best, sums)
    return replace(result, local=dict(local.metrics), verdict=verdict, **floor_of(result.task, local.metrics))


def pool_measured(task: str, measured: Mapping[str, Measured]) -> Evaluation:
    """Return the means over clients, as the server forms them."""
    comparison = TASKS[task].comparison
    higher = comparison is not None and comparison.higher_is_better
    replies = {}
    for name, one in measured.items():
        sums = (
            {SIMPLE: paired_sums(values(one.units), values(one.simple), higher_is_better=higher)} if one.units else {}
        )
        replies[name] = EvaluateReply(0, one.metrics, one.weights, sums)
    return summarize(replies)


def pair_clients(task: str, measured: Mapping[str, Measured], other: Mapping[str, Measured]) -> PairedSums:
    """Return the differences between two models over the units of clients that measured both."""
    comparison = TASKS[task].comparison
    if comparison is None:
        return PairedSums()
    pairs = [(values(measured[name].units), values(other[name].units)) for name in measured if name in other]
    fitting = [(a, b) for a, b in pairs if a.shape == b.shape]
    return pool_sums(paired_sums(a, b, higher_is_better=comparison.higher_is_better) for a, b in fitting)


MIN_SECONDS = 60.0
"""Time that the comparison may take at least; a longer run may be compared for as long as it took."""

MOST_CLIENTS = 2_000
"""Largest number of clients that are compared; of more, as many are drawn."""


class TimedGrid(InProcessGrid):
    """Grid that ends the run after a time."""

    def __init__(self, sessions: Mapping[int, Session], together: int, seconds: float) -> None:
        super().__init__(sessions, together)
        self._end = time.monotonic() + seconds

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages.

        Raises:
            BudgetSpentError: Another round is requested after the end of the time.
        """
        messages = list(messages)
        if time.monotonic() > self._end and any(message.metadata.message_type == TRAIN for message in messages):
            raise BudgetSpentError("the time of the comparison is over")
        return super().push_messages(messages)


def with_alone(
    result: Result, config: RunConfig, partitions: Sequence[AnyDataset], measured: Mapping[str, Measured]
) -> Result:
    """Return the result with the comparison in its verdict, unless it has one or nothing was compared.

    Clients alone have nothing in common: each takes the memory and time of a whole model.
    """
    verdict = result.verdict
    if verdict is None or verdict.alone is not None or result.status != "completed" or not measured:
        return result
    seconds, drawn = max(MIN_SECONDS, result.seconds), draw_clients(len(partitions), config.seed)
    of_all = f" of {len(partitions):,}, drawn by the seed" if len(drawn) < len(partitions) else ""
    clients = f"{len(drawn):,} clients" if of_all else "each client"
    console.print(
        f"comparing with {clients} alone{of_all}, for at most {seconds:.0f} s; Ctrl-C ends this, --no-alone omits it",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
    try:
        done, alone = train_alone(config, result.rounds_done, [partitions[k] for k in drawn], seconds)
    except (FedloomError, KeyboardInterrupt):
        return result
    alone = {f"client-{k}": alone[f"client-{drawn_as}"] for drawn_as, k in enumerate(drawn)}
    metric = pool_measured(result.task, alone).metrics.get(verdict.metric)
    sums = pair_clients(result.task, measured, alone)
    if metric is None or not sums.units:
        return result
    note = f"; alone for {done} of {result.rounds_done} rounds" if done < result.rounds_done else ""
    note += f"; {len(drawn):,} of {len(partitions):,} clients alone" if of_all else ""
    return replace(result, verdict=compare_alone(verdict, result.task, result.best, metric, sums, note))


def draw_clients(clients: int, seed: int) -> list[int]:
    """Return the numbers of the clients that are compared, ascending."""
    return sorted(np.random.default_rng(seed).permutation(clients)[:MOST_CLIENTS].tolist())


def train_alone(
    config: RunConfig, rounds: int, partitions: Sequence[AnyDataset], seconds: float
) -> tuple[int, dict[str, Measured]]:
    """Train every client alone, as in the run; return the number of rounds, and each client's measurement.

    Raises:
        FedloomError: The method does not support the task's options.
    """
    sessions, _ = open_sessions(partitions)
    with tempfile.TemporaryDirectory() as folder:
        own_catalogue = Path(folder) / "catalogue.json"
        own_catalogue.write_text(partitions[0].vocabulary.to_json(), "utf-8")
        alone = configure_alone(config, rounds, str(own_catalogue))
        result = run(TimedGrid(sessions, TOGETHER, seconds), alone, Path(folder))
    stored = {s.client: from_document(s.store.read(alone.run_id, MEASURED)) for s in sessions.values()}
    return result.rounds_done, stored
