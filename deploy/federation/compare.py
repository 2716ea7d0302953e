"""Comparison of a finished run with each client alone, and with what clients of this machine measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from client.data.dataset import AnyDataset
from client.data.read import read_under
from client.tasks.registry import build_learner
from client.training.alone import measure_alone
from client.training.comparison import MEASURED, Measured, from_document, has_units, pair_with_alone, to_paired, values
from common.config.parse import configure_alone
from common.config.run import RunConfig
from common.errors import FedloomError
from common.tasks.registry import read_vocabulary
from common.tasks.spec import ALONE
from common.tasks.vocabulary import FEDERATED
from common.text import count
from common.wire.messages import EvaluateReply
from deploy.cli.output import console
from deploy.federation.runs import runs_folder
from deploy.federation.start import ClientSpec
from server.aggregation.metrics import Evaluation, PairedSums, pool_sums, summarize
from server.record.folder import RunDirectory
from server.record.result import Result
from server.record.verdict import compare_alone, floor_of, judge_run


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
    verdict = result.verdict or judge_run(result.task, local.metrics, result.best, local.paired)
    return replace(result, local=dict(local.metrics), verdict=verdict, **floor_of(result.task, local.metrics))


def pool_measured(task: str, measured: Mapping[str, Measured]) -> Evaluation:
    """Return the means over clients, as the server forms them."""
    replies: dict[str, EvaluateReply] = {}
    for name, one in measured.items():
        rivals = {rival: values(of_rival) for rival, of_rival in one.rivals.items()}
        replies[name] = EvaluateReply(0, one.metrics, one.weights, to_paired(task, values(one.units), rivals, one.uses))
    return summarize(replies)


def pair_clients(task: str, measured: Mapping[str, Measured], alone: Mapping[str, Measured]) -> dict[str, PairedSums]:
    """Return the differences to models trained alone, and to the better of them and each rival."""
    pairs = [pair_with_alone(task, measured[name], alone[name]) for name in measured if name in alone]
    keys = dict.fromkeys([ALONE, *(key for sums in pairs for key in sums)])
    return {key: pool_sums(sums[key] for sums in pairs if sums) for key in keys}


MOST_CLIENTS = 2_000
"""Largest number of clients that are compared; of more, as many are drawn."""


def with_alone(
    result: Result,
    config: RunConfig,
    partitions: Sequence[AnyDataset],
    measured: Mapping[str, Measured],
    device: str = "cpu",
) -> Result:
    """Return the result with the comparison in its verdict, unless it has one or nothing was compared.

    Clients without held-out data are left out. The others train stacked, each for as many steps as the run took.
    """
    verdict = result.verdict
    numbers = [k for k in range(len(partitions)) if has_units(measured.get(f"client-{k}", Measured()))]
    if verdict is None or verdict.alone is not None or result.status != "completed" or not numbers:
        return result
    drawn = draw_clients(numbers, config.seed)
    of_all = (
        f"{len(drawn):,} of {count(len(numbers), 'client')}, drawn by the seed," if len(drawn) < len(numbers) else ""
    )
    console.print(
        f"comparing with {of_all or count(len(drawn), 'client')} alone; Ctrl-C ends this, --no-alone omits it",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
    try:
        chosen = {f"client-{k}": partitions[k] for k in drawn}
        if config.catalogue == FEDERATED:
            vocabulary = read_vocabulary(config.task, RunDirectory(runs_folder(), config.run_id).catalogue())
            chosen = {name: read_under(config.task, part, vocabulary) for name, part in chosen.items()}
        alone = train_alone(config, result.rounds_done, chosen, device)
    except (FedloomError, KeyboardInterrupt):
        return result
    value = pool_measured(result.task, alone).metrics.get(verdict.metric)
    sums = pair_clients(result.task, measured, alone)
    if value is None or not sums[ALONE].units:
        return result
    note = f"; alone: {of_all.removesuffix(',')}" if of_all else ""
    return replace(result, verdict=compare_alone(verdict, result.task, result.best, value, sums, note))


def draw_clients(numbers: Sequence[int], seed: int) -> list[int]:
    """Return the numbers of the clients that are compared, ascending."""
    return sorted(np.random.default_rng(seed).permutation(np.array(numbers))[:MOST_CLIENTS].tolist())


def train_alone(
    config: RunConfig, rounds: int, partitions: Mapping[str, AnyDataset], device: str = "cpu"
) -> dict[str, Measured]:
    """Train every client alone, for as many rounds as the run had, and return its measurement.

    Raises:
        FedloomError: The method does not support the task's options.
    """
    alone = configure_alone(config, rounds)
    learners = {name: build_learner(alone, data) for name, data in partitions.items()}
    return measure_alone(alone, next(iter(partitions.values())).vocabulary, learners, "test", device=device)
