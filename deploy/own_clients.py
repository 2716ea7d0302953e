"""Measurements of a finished run that clients of this machine stored, sent or not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from client.training.comparison import MEASURED, Measured, from_document, paired_sums, values
from common.tasks.comparison import SIMPLE
from common.tasks.registry import TASKS
from common.wire.messages import EvaluateReply
from deploy.federation import ClientSpec
from server.evaluation import Evaluation, summarize
from server.paired_sums import PairedSums, pool_sums
from server.result import Result
from server.verdict import floor_of, judge_run


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


def pair_clients(task: str, own: Mapping[str, Measured], other: Mapping[str, Measured]) -> PairedSums:
    """Return the differences between two models over the units of clients that measured both."""
    comparison = TASKS[task].comparison
    if comparison is None:
        return PairedSums()
    pairs = [(values(own[name].units), values(other[name].units)) for name in own if name in other]
    fitting = [(a, b) for a, b in pairs if a.shape == b.shape]
    return pool_sums(paired_sums(a, b, higher_is_better=comparison.higher_is_better) for a, b in fitting)
