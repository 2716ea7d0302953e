"""Journal of a run: converts rounds to events, checkpoints and the final result.

A checkpoint precedes the evaluation of its round, with the line of that round. A run that is killed in between evaluates
the model again after `--resume`, and writes the line then.
"""

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from common.config.run import RunConfig
from common.errors import DataError, FedloomError
from common.files import DISK_FULL
from common.privacy.mechanisms import build_account
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import printable
from common.wire.messages import EVALUATE, TRAIN
from server.aggregation.alignment import Alignment
from server.aggregation.lengths import ReplyMemory, RoundLengths
from server.aggregation.metrics import Evaluation
from server.clients.enrolment import Enrolment
from server.clients.presence import Attendance, Presence
from server.exchange.grid import Exchange, summarize_exchange
from server.planning.planner import RoundDecision, total_of
from server.record.events import Finish, RoundEvent, Split, Start, Waiting, event_from_line, event_to_line
from server.record.folder import Checkpoint, RunDirectory
from server.record.model_choice import ModelChoice, model_file
from server.record.privacy_statement import with_parent
from server.record.result import Result
from server.record.verdict import build_result
from server.record.withdrawal import read_forgotten
from server.round.checks import LossWatch
from server.round.state import PLAN_PREFIX, RunState, Trained
from server.secure.parties import describe_privacy


def describe_start(config: RunConfig, catalogue: Vocabulary, clients: Iterable[str]) -> Start:
    """Return the event of the start of a run, or of its continuation, with these clients."""
    names = sorted(clients)
    return Start(
        run=config.run_id,
        method=config.method,
        task=config.task,
        model=config.model,
        seed=config.seed,
        rounds=config.rounds,
        account=build_account(config.privacy).name if config.privacy.unit != "none" else "",
        simple=dict(TASKS[config.task].simple),
        split="validation" if config.task_options.validation_share else "",
        fingerprint=compute_fingerprint(config, catalogue),
        clients=names,
        remark=TASKS[config.task].remark(config.task_options, config.privacy, len(names)),
    )


def compute_fingerprint(config: RunConfig, catalogue: Vocabulary) -> str:
    """Return the SHA-256 of the task, its vocabulary and the options that decide on held-out data.

    Runs with different ones are not comparable.
    """
    options = {key: getattr(config.task_options, key) for key in sorted(config.task_options.split_options)}
    text = json.dumps([config.task, catalogue.to_json(), options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def find_training(exchanges: Sequence[Exchange]) -> Exchange:
    """Return the exchange in which the clients of a round trained first; an empty one without any."""
    for exchange in exchanges:
        if exchange.kind == TRAIN:
            return exchange
    return summarize_exchange([], [], 0.0)


def has_missing(exchanges: Sequence[Exchange], quorum: int) -> bool:
    """Return True if clients that did not answer the last training request could complete a quorum.

    A client whose disk is full is one of them.
    """
    training = next((exchange for exchange in reversed(exchanges) if exchange.kind == TRAIN), None)
    if training is None:
        return False
    waiting = [node for node, why in training.failed.items() if DISK_FULL in why]
    failed = len(training.failed) - len(waiting)
    return len(training.asked) - failed >= quorum and bool(training.missing or waiting)


def describe_round(
    trained: Trained,
    evaluation: Evaluation,
    exchanges: Sequence[Exchange],
    attendance: Attendance,
    name: Callable[[int], str],
    *,
    rounds: int,
    split: Split,
    refused: Mapping[str, str],
) -> RoundEvent:
    """Return the event of a round.

    The first training is among its exchanges. `refused` are refusals that no event has named: node or client -> reason.
    """
    training = find_training(exchanges)
    reasons = {
        **_list_unmeasured(exchanges, name, set(training.missing)),
        **refused,
        **{client: why for client, why in attendance.lost.items() if why},
        **trained.excluded,
        **trained.rejected,
        **{client: f"evaluation: {why}" for client, why in evaluation.dropped.items()},
    }
    missing = attendance.unanswered | {client for client, why in attendance.lost.items() if not why}
    return RoundEvent(
        round=trained.state.round,
        rounds=rounds,
        loss=trained.loss,
        metrics=dict(evaluation.metrics),
        split=split if evaluation.metrics else "",
        seconds=sum(exchange.seconds for exchange in exchanges),
        answered=max(len(training.durations) - len(trained.rejected), 0),
        asked=len(attendance.asked | attendance.lost.keys()),
        missing=sorted(client for client in missing if not attendance.lost.get(client)),
        refused={client: printable(why) for client, why in reasons.items()},
        shortened=dict(trained.shortened),
        bytes_down=sum(exchange.bytes_down for exchange in exchanges),
        bytes_up=sum(exchange.bytes_up for exchange in exchanges),
        server={**trained.server, **evaluation.notes},
        clusters=dict(trained.groups),
        median_loss=evaluation.median_loss,
        clients=attendance.clients,
        states=attendance.states,
        gone=attendance.gone,
    )


def _list_unmeasured(
    exchanges: Sequence[Exchange], name: Callable[[int], str], missing: Collection[int]
) -> dict[str, str]:
    """Return clients without metrics and the reasons; `missing` nodes did not answer in training either."""
    reasons: dict[int, str] = {}
    for exchange in exchanges:
        if exchange.kind == EVALUATE:
            reasons |= dict.fromkeys(exchange.missing, "evaluation: no answer")
            reasons |= {node: f"evaluation: {why}" for node, why in exchange.failed.items()}
    return {name(node): why for node, why in reasons.items() if node not in missing}


def find_unwritten(totals: dict[str, Any], written: Sequence[RoundEvent]) -> RoundEvent | None:
    """Return the line that a checkpoint keeps, if the newest written one is of an earlier round."""
    try:
        event = event_from_line(totals.get("line", ""))
    except DataError:  # of a release without these lines
        return None
    newest = max((one.round for one in written), default=0)
    return event if isinstance(event, RoundEvent) and event.round > newest else None


def complete(event: RoundEvent, evaluation: Evaluation, split: Split, exchanges: Sequence[Exchange]) -> RoundEvent:
    """Return a kept line with the evaluation of its round and the traffic since."""
    dropped = {client: printable(f"evaluation: {why}") for client, why in evaluation.dropped.items()}
    return replace(
        event,
        metrics=dict(evaluation.metrics),
        median_loss=evaluation.median_loss,
        split=split if evaluation.metrics else "",
        seconds=event.seconds + sum(exchange.seconds for exchange in exchanges),
        refused={**event.refused, **dropped},
        bytes_down=event.bytes_down + sum(exchange.bytes_down for exchange in exchanges),
        bytes_up=event.bytes_up + sum(exchange.bytes_up for exchange in exchanges),
        server={**event.server, **evaluation.notes},
    )


class Journal:
    """Writer of the run's folder while rounds proceed."""

    def __init__(
        self,
        folder: RunDirectory,
        config: RunConfig,
        enrolment: Enrolment,
        online: Callable[[], Iterable[int]] = lambda: (),
    ) -> None:
        self._folder, self._config, self._enrolment = folder, config, enrolment
        total = total_of(config)
        self._presence = Presence(enrolment.roster, online, total if math.isfinite(total) else None)
        self._started = time.monotonic()
        self._trained: Trained | None = None
        self.unwritten: RoundEvent | None = (
            None  # of a run that was killed between a checkpoint and the line of its round
        )
        self._opened: RunState | None = None
        self._exchanges, self._failed = list[Exchange](), list[Exchange]()
        self._bytes = (0, 0)
        self._reported: set[int] = set()
        self.choice = ModelChoice(folder, config)
        self.losses = LossWatch()
        self._last = Evaluation({}, {})
        self._sharing: set[str] = set()

    def resume(self, totals: dict[str, Any]) -> None:
        """Restore the sums of a checkpoint and of the written lines; a round's line follows its checkpoint."""
        self._enrolment.roster.spent = dict(totals["spent"])
        self._sharing = set(totals.get("sharing", ()))
        self._started -= totals["seconds"]
        rounds = [event for event in self._folder.events() if isinstance(event, RoundEvent)]
        for event in rounds:
            self._add(event.bytes_down, event.bytes_up)
            self.choice.restore(event)
            self.losses.record(event.median_loss)
            self._presence.restore(event)
        self.unwritten = find_unwritten(totals, rounds)

    def open(self, state: RunState) -> None:
        """Write the first checkpoint of a new run."""
        self._opened = state if self.unwritten else None
        if not state.round:
            self._checkpoint(state)

    def record_waiting(self, online: Collection[int], wanted: int, seconds: float) -> None:
        """Record that the run waits up to so many seconds for more clients."""
        names = sorted(self._enrolment.roster.name(node) for node in online)
        refused = self._enrolment.roster.reasons()
        self._folder.append(Waiting(online=names, wanted=wanted, until=time.time() + seconds, refused=refused))

    def start(self, catalogue: Vocabulary, remark: str = "") -> None:
        """Record the start of the run, or its continuation, after its clients have enrolled."""
        names = (client.name for client in self._enrolment.roster.clients.values())
        event = describe_start(self._config, catalogue, names)
        self._folder.append(replace(event, remark="; ".join(filter(None, (event.remark, remark)))))

    def record_exchange(self, exchange: Exchange) -> None:
        """Record a round trip to the clients; called before its replies are processed."""
        self._presence.record(exchange)
        self._exchanges.append(replace(exchange, replies=()))

    def record_decision(self, decision: RoundDecision) -> None:
        """Record the cost of a round, which clients may spend before the next checkpoint."""
        self._folder.write_decision(decision.to_json())

    def record_training(self, trained: Trained) -> None:
        """Record a training step and write its checkpoint."""
        self._trained = trained
        self._enrolment.remove_revoked()
        self._checkpoint(trained.state)

    def record_observation(self, state: RunState) -> None:
        """Write a checkpoint after a planner has observed the round."""
        self._checkpoint(state)

    def record_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """Record an evaluation, empty in rounds without one, and write the round's line."""
        self._sharing |= evaluation.sharing
        if evaluation.metrics or self._final(number):  # else the result would hold metrics of an earlier model
            self._last = evaluation if evaluation.metrics else Evaluation({}, evaluation.clients)
        state = self._trained.state if self._trained is not None else self._opened
        selection = self.choice.record(number, evaluation, self._split(number), state)
        if event := self._event(number, evaluation):
            self._add(event.bytes_down, event.bytes_up)
            self._folder.append(replace(event, selection=selection))
            self.losses.record(event.median_loss)
        self._trained = self.unwritten = self._opened = None
        self._exchanges, self._failed = [], []

    def _event(self, number: int, evaluation: Evaluation) -> RoundEvent | None:
        """Return the event of a round; None for a further evaluation of a model whose line is written."""
        if self._trained is not None:
            event = self._describe(self._trained, evaluation, self._presence)
            self._reported |= self._enrolment.roster.refused.keys()
            return event
        if self.unwritten is not None:
            self._presence.restore(self.unwritten)
            return complete(self.unwritten, evaluation, self._split(number), self._exchanges)
        return None

    def can_return(self, quorum: int) -> bool:
        """Return True if clients that did not answer could complete the round; its step is not made then."""
        return self._trained is None and has_missing(self._exchanges, quorum)

    def repeat_round(self) -> None:
        """Prepare to ask a round again."""
        self._failed, self._exchanges = [*self._failed, *self._exchanges], []

    def _add(self, down: int, up: int) -> None:
        self._bytes = (self._bytes[0] + down, self._bytes[1] + up)

    def _split(self, number: int) -> Split:
        """Return the data split of this round's metrics."""
        if self._config.task_options.validation_share == 0:
            return ""
        return "test" if self._final(number) else "validation"

    def _final(self, number: int) -> bool:
        """Return True if the evaluation is of the final model; without a training step the run ended early."""
        return number == self._config.rounds or (self._trained is None and self.unwritten is None)

    def _describe(self, trained: Trained, evaluation: Evaluation, presence: Presence) -> RoundEvent:
        number, rejected, roster = trained.state.round, trained.rejected, self._enrolment.roster
        split, training = self._split(number), find_training(self._exchanges)
        new = {roster.name(node): why for node, why in roster.refused.items() if node not in self._reported}
        event = describe_round(
            trained,
            evaluation,
            self._exchanges,
            presence.attend(number, training, rejected),
            roster.name,
            rounds=self._config.rounds,
            split=split,
            refused=new,
        )
        return complete(event, evaluation, event.split, self._failed) if self._failed else event

    def finish(self, state: RunState, reason: str = "", error: FedloomError | None = None) -> Result:
        """Write the result of the run; an error means that it failed."""
        roster = self._enrolment.roster
        for exchange in (*self._failed, *self._exchanges):  # after the last line
            self._add(exchange.bytes_down, exchange.bytes_up)
        privacy = describe_privacy(self._config, self._enrolment, len(self._sharing), self._folder.events())
        parent = self._folder.parent()
        result = build_result(
            self._config,
            state,
            self._last,
            self.choice.evaluation or self._last,
            best=self.choice.rounds.best,
            seconds=time.monotonic() - self._started,
            traffic=self._bytes,
            examples={client.name: client.examples for client in roster.clients.values()},
            privacy=with_parent(privacy, parent) if parent else privacy,
            reason=reason,
            error=error,
            parent=parent,
        )
        if forgotten := read_forgotten(self._folder):
            result = replace(result, replaces=forgotten.replaces)
        self._folder.write_result(result)
        self._folder.append(Finish(status=result.status, reason=result.reason))
        return result

    def _checkpoint(self, state: RunState) -> None:
        best = self.choice.rounds.best
        totals: dict[str, Any] = {"seconds": time.monotonic() - self._started, "best": best and asdict(best)}
        totals |= {"spent": self._enrolment.roster.spent, "sharing": sorted(self._sharing)}
        if self._trained is not None:  # the line waits for the evaluation, the sums of its round go on
            event = self._describe(self._trained, Evaluation({}, {}), copy.copy(self._presence))
            totals["line"] = event_to_line(event).decode()
        checkpoint = to_checkpoint(state, self._config.seed, totals)
        self._folder.checkpoints.save(checkpoint, best.round if best else 0)
        self._folder.save_model(*model_file(self._config, state))


def to_checkpoint(state: RunState, seed: int, totals: dict[str, Any]) -> Checkpoint:
    """Return the checkpoint of a state; `totals` are the sums of the journal."""
    groups = {"model": state.model, "statics": state.statics, **state.memory, **state.plan}
    about = {"counted": state.counted, "journal": totals, "guard": state.reply_memory.to_json()}
    return Checkpoint(state.round, seed, groups, about)


def restore(checkpoint: Checkpoint) -> RunState:
    """Return the state in a checkpoint."""
    groups = dict(checkpoint.groups)
    model, statics = groups.pop("model"), groups.pop("statics", {})
    plan = {name: groups.pop(name) for name in [*groups] if name.startswith(PLAN_PREFIX)}
    stored = checkpoint.state.get("guard", {})  # checkpoints of earlier releases have none
    recent = tuple(RoundLengths(**one) for one in stored.get("recent", ()))
    alignment = {
        kind: {client: Alignment(**sums) for client, sums in clients.items()}
        for kind, clients in stored.get("alignment", {}).items()
    }
    excluded, left_out = dict(stored.get("excluded", {})), dict(stored.get("left_out", {}))
    allied, votes = tuple(stored.get("allied", ())), {c: (a, n) for c, (a, n) in stored.get("votes", {}).items()}
    memory = ReplyMemory(recent, excluded, left_out, alignment, allied, votes)
    return RunState(checkpoint.round, model, groups, statics, dict(checkpoint.state["counted"]), plan, memory)
