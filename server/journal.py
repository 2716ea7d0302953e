"""Journal of a run: converts rounds to events, checkpoints and the final result."""

import time
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from platform import python_version
from typing import Any, Literal

from common.arrays import Arrays, sha256
from common.config.run import RunConfig
from common.privacy.mechanisms.registry import build_account
from common.wire.messages import EVALUATE, TRAIN
from server.artifacts import RunDirectory
from server.checkpoints import Checkpoint
from server.enrolment import Enrolment
from server.evaluation import Evaluation
from server.events import Best, ClientResult, Finish, Metrics, Result, Round, Split, Start
from server.grid import Exchange
from server.planning.planner import Agreed
from server.privacy_statement import statement
from server.state import PLAN_PREFIX, RunState, Trained


class Journal:
    """Writer of the run's folder while rounds proceed."""

    def __init__(self, folder: RunDirectory, config: RunConfig, enrolment: Enrolment) -> None:
        self._folder, self._config, self._enrolment = folder, config, enrolment
        self._started = time.monotonic()
        self._trained: Trained | None = None
        self._exchanges: list[Exchange] = []
        self._bytes = (0, 0)
        self._reported: set[int] = set()
        self._best: Best | None = None
        self._last = Evaluation({}, {})
        self._sharing: set[str] = set()

    def resume(self, totals: dict[str, Any]) -> None:
        """Restore the sums of a checkpoint and of the written lines; a round's line follows its checkpoint."""
        self._enrolment.roster.spent = dict(totals["spent"])
        self._sharing = set(totals.get("sharing", ()))
        self._started -= totals["seconds"]
        self._best = Best(**totals["best"]) if totals["best"] else None
        for event in self._folder.events():
            if isinstance(event, Round):
                self._add(event.bytes_down, event.bytes_up)
                self._compare(event.round, event.metrics, event.split)

    def start(self, state: RunState) -> None:
        """Record the start of the run, or its continuation."""
        c = self._config
        account = build_account(c.privacy).name if c.privacy.unit != "none" else ""
        event = Start(
            run=c.run_id, method=c.method, task=c.task, model=c.model, seed=c.seed, rounds=c.rounds, account=account
        )
        self._folder.append(event)
        if not state.round:
            self._checkpoint(state)

    def record_exchange(self, exchange: Exchange) -> None:
        """Record a round trip to the clients; called before its replies are processed."""
        self._exchanges.append(exchange)

    def record_decision(self, agreed: Agreed) -> None:
        """Record the cost of a round, which clients may spend before the next checkpoint."""
        self._folder.write_decision(agreed.to_json())

    def record_training(self, trained: Trained) -> None:
        """Record a training step and write its checkpoint."""
        self._trained = trained
        self._checkpoint(trained.state)

    def record_observation(self, state: RunState) -> None:
        """Write a checkpoint after a planner has observed the round."""
        self._checkpoint(state)

    def record_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """Record an evaluation, empty in rounds without one, and write the round's line."""
        self._sharing |= {name for name, metrics in evaluation.clients.items() if metrics}
        if evaluation.metrics or self._final(number):  # else the result would hold metrics of an earlier model
            self._last = evaluation if evaluation.metrics else Evaluation({}, {})
        if evaluation.metrics:
            self._compare(number, evaluation.metrics, self._split(number))
        if self._trained is not None:
            self._folder.append(self._line(self._trained, evaluation))
        self._trained, self._exchanges = None, []

    def _compare(self, number: int, metrics: Metrics, split: Split) -> None:
        """Record the round if it is the best among those whose metrics may select."""
        loss = metrics.get("loss")
        if loss is not None and split != "test" and (self._best is None or loss < self._best.metrics["loss"]):
            self._best = Best(round=number, metrics=dict(metrics), split=split)

    def _add(self, down: int, up: int) -> None:
        self._bytes = (self._bytes[0] + down, self._bytes[1] + up)

    def _split(self, number: int) -> Split:
        """Return the data split of this round's metrics."""
        if self._config.task_options.validation_share == 0:
            return ""
        return "test" if self._final(number) else "validation"

    def _final(self, number: int) -> bool:
        """Return True if the evaluation is of the final model; without a training step the run ended early."""
        return number == self._config.rounds or self._trained is None

    def _unmeasured(self, missing: Iterable[int]) -> dict[str, str]:
        """Return clients without metrics and the reasons; `asked` are those already missing in training."""
        reasons: dict[int, str] = {}
        for exchange in self._exchanges:
            if exchange.kind == EVALUATE:
                reasons |= dict.fromkeys(exchange.missing, "evaluation: no answer")
                reasons |= {node: f"evaluation: {why}" for node, why in exchange.failed.items()}
        return {self._enrolment.roster.name(node): why for node, why in reasons.items() if node not in set(missing)}

    def _line(self, trained: Trained, evaluation: Evaluation) -> Round:
        training = next(e for e in self._exchanges if e.kind == TRAIN)
        name = self._enrolment.roster.name
        down, up = sum(e.bytes_down for e in self._exchanges), sum(e.bytes_up for e in self._exchanges)
        self._add(down, up)
        return Round(
            round=trained.state.round,
            rounds=self._config.rounds,
            loss=trained.loss,
            metrics=dict(evaluation.metrics),
            split=self._split(trained.state.round) if evaluation.metrics else "",
            seconds=sum(e.seconds for e in self._exchanges),
            answered=len(training.replies) - len(trained.rejected),
            asked=len(training.asked),
            missing=sorted(name(node) for node in training.missing),
            refused=self._unmeasured(training.missing) | self._new_refusals() | trained.rejected,
            bytes_down=down,
            bytes_up=up,
            server={**trained.server, **evaluation.notes},
            clusters=dict(trained.groups),
        )

    def _new_refusals(self) -> dict[str, str]:
        """Return nodes that refused the invitation since the last line, with their reasons."""
        roster = self._enrolment.roster
        new = {roster.name(node): reason for node, reason in roster.refused.items() if node not in self._reported}
        self._reported |= roster.refused.keys()
        return new

    def finish(self, state: RunState, status: Literal["completed", "failed"], reason: str = "") -> Result:
        """Write the result of the run."""
        clients = self._enrolment.roster.clients.values()
        examples = {c.name: c.examples for c in clients}
        result = Result(
            run=self._config.run_id,
            method=self._config.method,
            task=self._config.task,
            model=self._config.model,
            seed=self._config.seed,
            rounds=self._config.rounds,
            rounds_done=state.round,
            status=status,
            reason=reason,
            metrics=dict(self._last.metrics),
            best=self._best,
            clients={n: ClientResult(examples=examples.get(n, 0), metrics=m) for n, m in self._last.clients.items()},
            seconds=time.monotonic() - self._started,
            bytes_down=self._bytes[0],
            bytes_up=self._bytes[1],
            privacy=statement(self._config, self._enrolment.roster.spent, len(self._sharing)),
            model_sha256=sha256(state.model),
            versions={**{p: version(p) for p in ("fedloom", "flwr", "torch")}, "python": python_version()},
        )
        self._folder.write_result(result)
        self._folder.append(Finish(status=status, reason=reason))
        return result

    def _checkpoint(self, state: RunState) -> None:
        groups: dict[str, Arrays] = {"model": state.model, "statics": state.statics, **state.memory, **state.plan}
        seconds = time.monotonic() - self._started
        totals: dict[str, Any] = {"seconds": seconds, "best": self._best and asdict(self._best)}
        totals |= {"spent": self._enrolment.roster.spent, "sharing": sorted(self._sharing)}
        about = {"counted": state.counted, "journal": totals}
        best = self._best.round if self._best else 0
        self._folder.checkpoints.save(Checkpoint(state.round, self._config.seed, groups, about), best)
        header = {"method": self._config.method, "task": self._config.task, "round": str(state.round)}
        self._folder.save_model({**state.model, **state.statics}, header)


def restore(checkpoint: Checkpoint) -> RunState:
    """Return the state in a checkpoint."""
    groups = dict(checkpoint.groups)
    model, statics = groups.pop("model"), groups.pop("statics", {})
    plan = {name: groups.pop(name) for name in [*groups] if name.startswith(PLAN_PREFIX)}
    return RunState(checkpoint.round, model, groups, statics, dict(checkpoint.state["counted"]), plan)
