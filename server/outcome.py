"""Result of a run from its final state, metrics and totals; pure but for the installed versions."""

from dataclasses import dataclass
from importlib.metadata import version
from platform import python_version
from typing import NamedTuple

from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError
from common.tasks.comparison import ALONE, ALONE_PREFIX, ALONE_ROUNDS, SIMPLE
from server.evaluation import Evaluation
from server.paired_sums import PairedSums
from server.result import Best, ClientResult, Privacy, Result, Verdict
from server.state import RunState
from server.verdict import compare_alone, floor_of, judge_run


@dataclass(frozen=True)
class RunTotals:
    """Totals of a run.

    Args:
        best: Best evaluated round.
        seconds: Duration of the run.
        bytes: Bytes to and from the clients.
        examples: Client -> number of records.
        privacy: Privacy statement.
    """

    best: Best | None
    seconds: float
    bytes: tuple[int, int]
    examples: dict[str, int]
    privacy: Privacy


class Evaluations(NamedTuple):
    """Evaluations on test data of the final model, and of the model that is used."""

    final: Evaluation
    used: Evaluation


def build_result(
    config: RunConfig,
    state: RunState,
    evaluations: Evaluations,
    totals: RunTotals,
    reason: str,
    error: FedloomError | None,
) -> Result:
    """Return the result of a run; an error means that it failed."""
    examples, (last, used) = totals.examples, evaluations
    names = sorted({*last.clients, *state.counted})
    return Result(
        run=config.run_id,
        method=config.method,
        task=config.task,
        model=config.model,
        seed=config.seed,
        rounds=config.rounds,
        rounds_done=state.round,
        status="failed" if error else "completed",
        reason=str(error) if error else reason,
        metrics=dict(last.metrics),
        best=totals.best,
        clients={n: ClientResult(examples=examples.get(n, 0), metrics=last.clients.get(n, {})) for n in names},
        seconds=totals.seconds,
        bytes_down=totals.bytes[0],
        bytes_up=totals.bytes[1],
        privacy=totals.privacy,
        model_sha256=sha256(state.model),
        error=type(error).__name__ if error else "",
        summed=last.summed,
        verdict=_judge(config, used, totals.best, state.round),
        **floor_of(config.task, last.metrics),
        versions={**{p: version(p) for p in ("fedloom", "flwr", "torch")}, "python": python_version()},
    )


def _judge(config: RunConfig, used: Evaluation, best: Best | None, done: int) -> Verdict | None:
    """Return the verdict, with the comparison with clients alone if they measured it."""
    verdict = judge_run(config.task, used.metrics, best, used.paired.get(SIMPLE, PairedSums()))
    sums = used.paired.get(ALONE, PairedSums())
    if verdict is None or not sums.units or verdict.metric not in used.alone:
        return verdict
    rounds = round(used.alone.get(ALONE_ROUNDS.removeprefix(ALONE_PREFIX), done))
    note = f"; alone for {rounds} of {done} rounds" if rounds < done else ""
    return compare_alone(verdict, config.task, best, used.alone[verdict.metric], sums, note)
