"""The run's diary: turns what happens in rounds into events, checkpoints and the final result."""

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
from server.artifacts import Checkpoint, RunDirectory
from server.enrolment import Enrolment
from server.evaluation import Evaluation
from server.events import Best, ClientResult, Finish, Metrics, Result, Round, Split, Start
from server.grid import Exchange
from server.planning.planner import Agreed
from server.privacy_statement import statement
from server.state import PLAN, RunState, Trained


class Journal:
    """Writes the run's folder as rounds go by."""

    def __init__(self, folder: RunDirectory, config: RunConfig, enrolment: Enrolment) -> None:
        self._folder, self._config, self._enrolment = folder, config, enrolment
        self._started = time.monotonic()
        self._trained: Trained | None = None
        self._exchanges: list[Exchange] = []
        self._bytes = (0, 0)
        self._told: set[int] = set()
        self._best: Best | None = None
        self._last = Evaluation({}, {})
        self._sharing: set[str] = set()

    def go_on(self, so_far: dict[str, Any]) -> None:
        """Take up the account that a checkpoint holds, and that of lines: a round's is written after its checkpoint."""
        self._enrolment.roster.spent = dict(so_far["spent"])
        self._sharing = set(so_far.get("sharing", ()))
        self._started -= so_far["seconds"]
        self._best = Best(**so_far["best"]) if so_far["best"] else None
        for line in self._folder.events():
            if isinstance(line, Round):
                self._add(line.bytes_down, line.bytes_up)
                self._compare(line.round, line.metrics, line.split)

    def start(self, state: RunState) -> None:
        """Note that the run begins, or goes on."""
        c = self._config
        account = build_account(c.privacy).name if c.privacy.unit != "none" else ""
        what = Start(
            run=c.run_id, method=c.method, task=c.task, model=c.model, seed=c.seed, rounds=c.rounds, account=account
        )
        self._folder.append(what)
        if not state.round:
            self._checkpoint(state)

    def exchanged(self, exchange: Exchange) -> None:
        """Note a round trip to the clients; called for every one, before what it brought is worked on."""
        self._exchanges.append(exchange)

    def decided(self, agreed: Agreed) -> None:
        """Note what a round costs, which clients may pay before the next checkpoint."""
        self._folder.write_decision(agreed.to_json())

    def trained(self, trained: Trained) -> None:
        """Note a training step and checkpoint it."""
        self._trained = trained
        self._checkpoint(trained.state)

    def observed(self, state: RunState) -> None:
        """Note what a planner has learnt from the round."""
        self._checkpoint(state)

    def evaluated(self, number: int, evaluation: Evaluation) -> None:
        """Note an evaluation, empty in rounds without one, and write the round's line."""
        self._sharing |= {name for name, metrics in evaluation.clients.items() if metrics}
        if evaluation.metrics or self._final(number):  # else metrics of another model would stand beside the last
            self._last = evaluation if evaluation.metrics else Evaluation({}, {})
        if evaluation.metrics:
            self._compare(number, evaluation.metrics, self._split(number))
        if self._trained is not None:
            self._folder.append(self._line(self._trained, evaluation))
        self._trained, self._exchanges = None, []

    def _compare(self, number: int, metrics: Metrics, split: Split) -> None:
        """Note the round if it is the best of those whose metrics may choose."""
        loss = metrics.get("loss")
        if loss is not None and split != "test" and (self._best is None or loss < self._best.metrics["loss"]):
            self._best = Best(round=number, metrics=dict(metrics), split=split)

    def _add(self, down: int, up: int) -> None:
        self._bytes = (self._bytes[0] + down, self._bytes[1] + up)

    def _split(self, number: int) -> Split:
        """What the metrics of this round are of."""
        if self._config.task_options.validation_share == 0:
            return ""
        return "test" if self._final(number) else "validation"

    def _final(self, number: int) -> bool:
        """Whether that evaluation is of the finished model; without a round it is that of a run that ended early."""
        return number == self._config.rounds or self._trained is None

    def _unmeasured(self, asked: Iterable[int]) -> dict[str, str]:
        """Who trained and told no metrics, and why; `asked` are those who did not answer in training either."""
        found: dict[int, str] = {}
        for exchange in self._exchanges:
            if exchange.kind == EVALUATE:
                found |= dict.fromkeys(exchange.missing, "evaluation: no answer")
                found |= {node: f"evaluation: {why}" for node, why in exchange.failed.items()}
        return {self._enrolment.roster.name(node): why for node, why in found.items() if node not in set(asked)}

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
        """Nodes that turned the invitation down since the last line, with their reasons."""
        roster = self._enrolment.roster
        new = {roster.name(node): reason for node, reason in roster.refused.items() if node not in self._told}
        self._told |= roster.refused.keys()
        return new

    def finish(self, state: RunState, status: Literal["completed", "failed"], reason: str = "") -> Result:
        """Write what the run came to."""
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
        so_far: dict[str, Any] = {"seconds": seconds, "best": self._best and asdict(self._best)}
        so_far |= {"spent": self._enrolment.roster.spent, "sharing": sorted(self._sharing)}
        about = {"counted": state.counted, "journal": so_far}
        best = self._best.round if self._best else 0
        self._folder.save_checkpoint(Checkpoint(state.round, self._config.seed, groups, about), best)
        header = {"method": self._config.method, "task": self._config.task, "round": str(state.round)}
        self._folder.save_model({**state.model, **state.statics}, header)


def restore(checkpoint: Checkpoint) -> RunState:
    """The state that a checkpoint holds."""
    groups = dict(checkpoint.groups)
    model, statics = groups.pop("model"), groups.pop("statics", {})
    plan = {name: groups.pop(name) for name in [*groups] if name.startswith(PLAN)}
    return RunState(checkpoint.round, model, groups, statics, dict(checkpoint.state["counted"]), plan)
