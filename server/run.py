"""Run on the server, from configuration to result, over gRPC or in one process."""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord
from flwr.serverapp import Grid

from common.arrays import group
from common.config.parse import flatten, reason_for_replies, to_json
from common.config.run import RunConfig, resolve_rows
from common.errors import BudgetSpentError, ConfigError, DataError, FedloomError, QuorumError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.privacy.signal import DrownedError, check_signal
from common.registry import naming_packages
from common.tasks.registry import TASKS, demo_vocabulary, read_vocabulary
from common.tasks.vocabulary import FEDERATED, Vocabulary
from common.wire.messages import EnrolRequest
from server.clients.enrolment import MAX_REWAIT_SECONDS, SUMS, Enrolment, HubAdmission
from server.clients.ledger_heads import LedgerHeads
from server.clients.names import NameBindings
from server.clients.roster import Roster, cohort_size
from server.clients.vocabulary import check_noise, find_vocabulary, sum_names
from server.compose import build_round
from server.exchange.door import connect
from server.exchange.grid import Liveness, PollingGrid, RoundLimits
from server.exchange.relays import HubGrid
from server.parent import continue_state, extend_vocabulary, find_repeated
from server.planning.planner import read_round_decision
from server.record.events import ENDED_EARLY
from server.record.folder import LOCK_SECONDS, RunDirectory, make_run_id
from server.record.journal import Journal, restore
from server.record.result import Result
from server.record.withdrawal import complete_receipts, read_forgotten
from server.round.intake import RepeatedError
from server.round.round import Round, RoundObserver
from server.round.state import RunState
from server.secure.names import NAME_CHANNELS, sum_masked_names
from server.secure.parties import Parties, find_oversize, find_parties
from server.secure.sums import HelperSums


def read_catalogue(config: RunConfig) -> Vocabulary:
    """Read the task's public vocabulary.

    Raises:
        ConfigError: The file cannot be read.
        DataError: The file is not a vocabulary.
    """
    if config.catalogue == "demo":
        return demo_vocabulary(config.task)
    try:
        return read_vocabulary(config.task, Path(config.catalogue).read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"cannot read vocabulary file {config.catalogue} ({error.strerror}); check --catalogue"
        ) from None
    except DataError as error:
        raise DataError(str(error), config.catalogue) from None


log = logging.getLogger("fedloom.server")

FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.05, 1.5, 2.0  # between two requests of a round


@dataclass
class Patience:
    """Time in which one round may be asked again, from its first failure.

    Args:
        seconds: The time.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    round: int = -1
    end: float = 0.0
    pause: float = 0.0

    def allows(self, number: int) -> bool:
        """Return True if the round of this number may be asked again."""
        if number != self.round:
            self.round, self.end, self.pause = number, self.clock() + self.seconds, FIRST_PAUSE_SECONDS
        return self.clock() <= self.end

    def wait(self) -> None:
        """Wait longer before each repetition, since a node may answer at once that it cannot train."""
        self.sleep(self.pause)
        self.pause = min(self.pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)


def train(strategy: Round, grid: Grid, journal: Journal) -> str:
    """Train all rounds, or as many as the clients can afford; return the reason of an early end.

    Without remaining rounds the run ended in its last evaluation; only that evaluation is done. A round that lost its
    clients is asked again once enough are back, for as long as a running run waits for clients. One with unusable replies
    is asked again without their senders, if the others are enough; one with a lost sum that may be repeated, at once.

    Raises:
        QuorumError: Too few clients answered or came back.
    """
    config = strategy.config
    patience = Patience(min(config.federation.wait, MAX_REWAIT_SECONDS))
    if journal.unwritten and strategy.state.round < config.rounds:
        strategy.evaluate(grid)  # a kill has interrupted it
    while (rounds := config.rounds - strategy.state.round) > 0:
        try:
            strategy.start(grid, ArrayRecord(), num_rounds=rounds, timeout=config.federation.deadline)
        except BudgetSpentError as spent:
            strategy.conclude(grid)
            return f"{ENDED_EARLY}: {spent}"
        except RepeatedError as lost:
            log.warning("%s; the sum is asked again", lost)
            journal.repeat_round()
        except QuorumError:
            can_return = journal.can_return(config.federation.min_replies) and patience.allows(strategy.state.round)
            if not (can_return or strategy.can_exclude(grid)):
                raise
            journal.repeat_round()
            patience.wait()
        else:
            return ""
    strategy.conclude(grid)
    return ""


OnRound = Callable[[RunState], None]
"""Callback before each round."""


def run(
    grid: Grid,
    config: RunConfig,
    runs: Path,
    nodes: Path | None = None,
    on_round: OnRound = RoundObserver.on_round,
    home: Path | None = None,
) -> Result:
    """Train to the end; all results are in `runs/<id>/`.

    Args:
        grid: Connection to the clients.
        config: Configuration of the run.
        runs: Folder with one folder per run.
        nodes: Folder with the names of clients by their keys; None if names are not bound to keys.
        on_round: Callback before each round, with the state after the last one. Its checkpoint and its line are written.
        home: Folder of the SuperLink, whose disk needs room for a round too; None without one.

    Raises:
        ConfigError: Another process works on the run.
        FedloomError: The run cannot continue; its folder has the last valid model and a result with the reason.
    """
    logging.getLogger("flwr").setLevel(logging.WARNING)  # Flower logs every step; ours is one line per round
    config = config if config.run_id else config.model_copy(update={"run_id": make_run_id(config.method, config.task)})
    folder = RunDirectory(runs, config.run_id)
    if config.resume:
        folder.config()  # raises at once if there is no such run, and creates no folder
    catalogue = _known_catalogue(config, folder)
    with folder.lock(wait=LOCK_SECONDS):
        hubs = HubGrid(connect(grid, min(config.federation.deadline, config.federation.upload)))
        liveness = Liveness(hubs.get_nodes)
        at = Connection(hubs, folder, nodes, liveness)
        oversize = partial(find_oversize, vocabulary=catalogue) if catalogue else lambda config: ""
        parties = find_parties(hubs, config, folder, liveness, oversize)
        if catalogue is None:
            parties, catalogue = _find_catalogue(at, parties)
        elif not config.resume:
            parties = parties.resolved(partial(resolve_rows, vocabulary=catalogue))

        def before_round(state: RunState) -> None:
            folder.await_room(*([home] if home else []))
            on_round(state)

        return _run(at, parties, catalogue, before_round)


@dataclass(frozen=True)
class Connection:
    """Clients of a run, and the folder that records what they answer.

    Clients of hubs are nodes of its grid. Without `nodes`, names are not bound to keys.
    """

    grid: HubGrid
    folder: RunDirectory
    nodes: Path | None
    liveness: Liveness

    def connect(self, parties: Parties) -> Callable[..., PollingGrid]:
        """Return a function that makes a grid with the limits of a round; it hides the helpers."""
        federation = parties.config.federation
        limits = RoundLimits(federation.min_replies, federation.deadline, federation.patience)
        return partial(PollingGrid, self.grid, limits, liveness=self.liveness, hidden=parties.exchange.helping)

    def invite(self, parties: Parties, catalogue: str) -> tuple[Enrolment, Journal]:
        """Return the enrolment in a run with this vocabulary, and the journal that records it."""
        config = parties.config
        sent = config.model_copy(update={"resume": False})  # else clients of a resumed run prepare their data again
        invitation = EnrolRequest(config.run_id, to_json(sent), catalogue, parties.cards)
        enrolment = _build_enrolment(config, invitation, self.connect(parties)(), self.grid, self.folder, self.nodes)
        journal = Journal(self.folder, config, enrolment, self.grid.get_node_ids)
        enrolment.on_wait, enrolment.on_refusal = journal.record_waiting, self.folder.append
        return enrolment, journal


def _known_catalogue(config: RunConfig, folder: RunDirectory) -> Vocabulary | None:
    """Return the vocabulary of a run, behind the names of its parent; None if clients have to find it."""
    is_found = config.catalogue == FEDERATED
    if config.resume and (is_found or config.start_from):
        return read_vocabulary(config.task, folder.catalogue()) if folder.has_catalogue else None
    if is_found:
        return None
    return extend_vocabulary(config, folder, partial(read_catalogue, config))


def _find_catalogue(at: Connection, parties: Parties) -> tuple[Parties, Vocabulary]:
    """Let the clients find the vocabulary, and store it.

    The run exists from then on, and goes on as a resumed one does.

    Raises:
        FedloomError: They do not find it; the run's folder has a result with the reason.
    """
    config, folder = parties.config, at.folder
    if not config.resume:
        folder.require_new()
        folder.configure(flatten(config))
    parties.save()
    quiet, (enrolment, journal) = at.connect(parties)(), at.invite(parties, "")
    roster = enrolment.roster
    sums = parties.sums(folder.append, roster)
    try:
        enrolment.assemble(quiet, config.clients_to_begin)
        check_noise(config, len(roster.select_trainable(quiet.get_node_ids())))
        add_up = partial(sum_masked_names, quiet, roster, sums) if sums else partial(sum_names, quiet, roster)
        catalogue = extend_vocabulary(config, folder, partial(find_vocabulary, config, add_up))
        if parties.roster and (reason := find_oversize(config, catalogue)):
            raise ConfigError(f"{reason}; set privacy.trust=local")
    except FedloomError as error:
        journal.finish(RunState(0, {}), error=error)
        raise
    parties = parties.resolved(partial(resolve_rows, vocabulary=catalogue))
    folder.configure(flatten(parties.config))
    folder.write_catalogue(json.loads(catalogue.to_json()))
    if sums:
        sums.store.clear(0, *NAME_CHANNELS)  # sums of rarer names are in no file from now on
    return replace(parties, config=parties.config.model_copy(update={"resume": True})), catalogue


def _run(at: Connection, parties: Parties, catalogue: Vocabulary, on_round: OnRound) -> Result:
    config, folder, connect = parties.config, at.folder, at.connect(parties)
    at.grid.sums = not reason_for_replies(config)
    state, totals = _load_or_create(folder, config, catalogue)
    parties.save()
    quiet, (enrolment, journal) = connect(), at.invite(parties, catalogue.to_json())
    if totals:
        journal.resume(totals)
    sums = parties.sums(folder.append, enrolment.roster)
    strategy = _build_round(config, state, enrolment, journal, folder, sums, on_round)
    journal.open(strategy.state)
    recorded, has_started = connect(on_exchange=journal.record_exchange, take=strategy.take), False
    recorded.on_look = partial(enrolment.greet, recorded)
    try:
        enrolment.assemble(recorded, config.federation.min_clients)
        has_started = True
        if not state.round:
            _check_signal(config, state, quiet, enrolment.roster)
        examples = {client.name: client.examples for client in enrolment.roster.clients.values()}
        journal.start(catalogue, find_repeated(config, folder, examples))
        used = (TASKS, config.task), (METHODS, config.method_options.name), (PLANNERS, config.method)
        with naming_packages([package for registry, name in used for package in registry.packages(name)]):
            early = train(strategy, recorded, journal)
            journal.choice.conclude(strategy, recorded)
    except FedloomError as error:
        if isinstance(error, DrownedError) and config.first:
            log.warning("%s; the run takes the sums of %s alone, with the whole budget", error, config.first)
            folder.discard()
            return _run(at, parties.resolved(lambda config: config.phases[0]), catalogue, on_round)
        if parties.are_optional and not has_started:
            folder.discard()
            return _run(at, parties.without_helpers(error), catalogue, on_round)
        journal.finish(strategy.state, error=error)
        raise
    result = journal.finish(strategy.state, early)
    complete_receipts(folder.path.parent, result, is_solved=config.has_closed_form)
    parties.dismiss()  # afterwards: a run that is killed before its result needs its helpers
    return result


def _check_signal(config: RunConfig, state: RunState, grid: PollingGrid, roster: Roster) -> None:
    """Check that noise leaves something of the training of the clients that are here."""
    clients, federation = len(roster.select_trainable(grid.get_node_ids())), config.federation
    asked = cohort_size(clients, federation.cohort, federation.min_replies)
    check_signal(config, group("0", state.model) or state.model, asked)


def _build_round(
    config: RunConfig,
    state: RunState,
    enrolment: Enrolment,
    journal: Journal,
    folder: RunDirectory,
    sums: HelperSums | None,
    on_round: OnRound,
) -> Round:
    """Build the round of a run, which its journal records."""
    observer = RoundObserver(
        on_round=on_round,
        on_trained=journal.record_training,
        on_evaluated=journal.record_evaluation,
        on_observed=journal.record_observation,
        reason_to_stop=journal.choice.rounds.reason_to_stop,
        find_explosion=journal.losses.find_explosion,
    )
    decided = folder.decision() if config.resume and config.needs_planner else ""
    return build_round(
        config,
        state,
        enrolment,
        observer,
        sums=sums,
        folder=folder.path,
        on_decided=journal.record_decision,
        decision=read_round_decision(decided) if decided else None,
    )


def _build_enrolment(
    config: RunConfig,
    invitation: EnrolRequest,
    grid: PollingGrid,
    hubs: HubGrid,
    folder: RunDirectory,
    nodes: Path | None,
) -> Enrolment:
    names, forgotten = NameBindings(nodes, hubs.get_nodes), read_forgotten(folder)

    def ledger_owner(node: int) -> str:
        """Return the fingerprint of a node's key, with the client's name behind that of a hub."""
        client = hubs.hosted(node)
        return names.fingerprint(node) and names.fingerprint(node) + (f"#{client.name}" if client else "")

    return Enrolment(
        invitation,
        config.federation.wait,
        lambda messages, seconds: grid.send_and_receive(messages, timeout=seconds) if seconds else grid.post(messages),
        names=names,
        ledgers=LedgerHeads(nodes, config.task, ledger_owner),
        hubs=HubAdmission(hubs, names, SUMS if config.privacy.resolved_trust == "helpers" else ""),
        forgets=forgotten.forgets if forgotten else lambda client: False,
    )


def _load_or_create(folder: RunDirectory, config: RunConfig, catalogue: Vocabulary) -> tuple[RunState, dict[str, Any]]:
    """Return the state of a new or resumed run, and the journal's totals so far."""
    if config.resume:
        folder.resume(flatten(config.model_copy(update={"resume": False})))
        if checkpoint := folder.checkpoints.load_latest():
            return restore(checkpoint), checkpoint.state["journal"]
    from common.models import parameters_of

    spec = TASKS[config.task]
    task_run, capabilities = config.task_run(spec, catalogue), config.phases[0].capabilities
    closed_form = spec.closed_form if config.has_closed_form else None
    model = parameters_of(config, catalogue)
    started = closed_form.start(task_run) if closed_form else {}
    if closed_form and config.privacy.resolved_trust == "helpers":
        started = closed_form.limit_masked(started, int(capabilities.min_count > 0))
    initial = RunState(0, model, statics=started)
    if config.start_from:
        initial = continue_state(config, catalogue, initial, folder)
    if not config.resume:
        folder.create(flatten(config), json.loads(catalogue.to_json()))
    return initial, {}
