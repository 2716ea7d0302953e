"""One run on the server, from configuration to result; the same over TLS gRPC, in Flower's simulation and in process."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

from flwr.serverapp import Grid

from common.config.flatten import flatten, to_json
from common.config.run import RunConfig
from common.errors import BudgetSpentError, ConfigError, DataError, FedloomError
from common.models import build_model, parameters
from common.tasks.registry import TASKS, demo_vocabulary, read_vocabulary
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import to_record
from common.wire.messages import EnrolRequest
from server.artifacts import RunDirectory, fresh_run_id
from server.enrolment import Enrolment
from server.events import ENDED_EARLY, Result
from server.federated_counts import sum_counts
from server.grid import PollingGrid, RoundLimits
from server.journal import Journal, restore
from server.planning.planner import agreed_in
from server.planning.spending import budget_of
from server.state import RunState
from server.strategies.planned import PlannedStrategy
from server.strategies.registry import build_strategy
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts


def run(grid: Grid, config: RunConfig, runs: Path) -> Result:
    """Train to the end and leave everything in `runs/<id>/`.

    Raises:
        ConfigError: Another process is at work on the run.
        FedloomError: The run could not go on; its last good model and a result saying why are in its folder.
    """
    logging.getLogger("flwr").setLevel(logging.WARNING)  # Flower tells of every step; our lines are one a round
    config = config if config.run_id else config.model_copy(update={"run_id": fresh_run_id(config.method, config.task)})
    catalogue, folder = read_catalogue(config), RunDirectory(runs, config.run_id)
    if config.resume:
        folder.config()  # says at once if there is no such run, and leaves no folder behind
    with folder.held():
        return _run(grid, config, catalogue, folder)


def _run(grid: Grid, config: RunConfig, catalogue: Vocabulary, folder: RunDirectory) -> Result:
    state, so_far = _begun(folder, config, catalogue)

    federation = config.federation
    limits = RoundLimits(federation.min_replies, federation.deadline, federation.patience)
    invitation = EnrolRequest(config.run_id, to_json(config), catalogue.to_json())
    quiet = PollingGrid(grid, limits)
    enrolment = Enrolment(
        invitation, federation.wait, lambda messages, seconds: quiet.send_and_receive(messages, timeout=seconds)
    )
    journal = Journal(folder, config, enrolment)
    if so_far:
        journal.go_on(so_far)
    strategy = _strategy(config, state, enrolment, journal, folder.decision() if config.resume else "")
    journal.start(strategy.state)
    noted = PollingGrid(grid, limits, on_exchange=journal.exchanged)
    try:
        enrolment.assemble(grid, federation.min_clients)
        if config.task_options.count_offset and not state.statics:
            add = partial(TASKS[config.task].add_counts, vocabulary=catalogue)
            strategy.state = sum_counts(quiet, enrolment.roster, strategy.state, add)
        early = _train(strategy, noted, config.rounds - state.round, federation.deadline)
    except FedloomError as error:
        journal.finish(strategy.state, "failed", str(error))
        raise
    return journal.finish(strategy.state, "completed", early)


def _train(strategy: RoundStrategy | PlannedStrategy, grid: Grid, rounds: int, deadline: float) -> str:
    """All rounds, or as many as the clients can pay; why there were no more, if so.

    Without any left, the run ended in its last evaluation: the model is measured and handed out now.
    """
    if rounds <= 0:
        strategy.conclude(grid)
        return ""
    try:
        strategy.start(grid, to_record(strategy.state.model), num_rounds=rounds, timeout=deadline)
    except BudgetSpentError as spent:
        strategy.conclude(grid)
        return f"{ENDED_EARLY}: {spent}"
    return ""


def _strategy(
    config: RunConfig, state: RunState, enrolment: Enrolment, journal: Journal, decided: str
) -> RoundStrategy | PlannedStrategy:
    """The method, inside a planner where a budget is to be spent."""
    parts = RoundParts(config, state, enrolment, journal.trained, journal.evaluated)
    if not config.planned:
        return build_strategy(parts)
    agreed = agreed_in(decided) if decided else None
    return PlannedStrategy(parts, budget_of(config), journal.observed, journal.decided, agreed)


def read_catalogue(config: RunConfig) -> Vocabulary:
    """The task's public vocabulary.

    Raises:
        ConfigError: The file is not there.
        DataError: It is no vocabulary.
    """
    if config.catalogue == "demo":
        return demo_vocabulary(config.task)
    try:
        return read_vocabulary(config.task, Path(config.catalogue).read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"catalogue {config.catalogue}: {error.strerror}") from None
    except DataError as error:
        raise DataError(str(error), config.catalogue) from None


def _begun(folder: RunDirectory, config: RunConfig, catalogue: Vocabulary) -> tuple[RunState, dict[str, Any]]:
    """Where a run stands, new or resumed, and the journal's account so far."""
    spec = TASKS[config.task]
    fresh = RunState(0, parameters(build_model(spec, config.task_run(spec, catalogue))))
    if not config.resume:
        folder.create(flatten(config), json.loads(catalogue.to_json()))
        return fresh, {}
    folder.go_on(flatten(config.model_copy(update={"resume": False})))
    checkpoint = folder.load_latest()
    return (restore(checkpoint), checkpoint.state["journal"]) if checkpoint else (fresh, {})
