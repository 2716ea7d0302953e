"""Result of a run from its final state, metrics and totals; pure but for the installed versions."""

from dataclasses import dataclass
from importlib.metadata import version
from platform import python_version
from typing import NamedTuple

from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError
from server.evaluation import Evaluation
from server.paired_sums import PairedSums
from server.result import Best, ClientResult, Privacy, Result
from server.state import RunState
from server.verdict import judge_run


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
    sums = used.paired.get("simple", PairedSums())
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
        verdict=judge_run(config.task, used.metrics, totals.best, sums),
        versions={**{p: version(p) for p in ("fedloom", "flwr", "torch")}, "python": python_version()},
    )
