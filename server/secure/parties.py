"""Trust of a run: its helpers, the sizes of its sums, and its privacy statement."""

import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from flwr.serverapp import Grid

from common.config.parse import to_json
from common.config.run import RunConfig, find_obstacle
from common.errors import ConfigError, QuorumError
from common.options import kebab
from common.privacy.options import ResolvedTrust
from common.privacy.signal import count_numbers
from common.secure.cards import HelperRoster, NodeCard
from common.secure.terms import MOST_NUMBERS
from common.tasks.closed_form import widen
from common.tasks.registry import TASKS, closed_form_of
from common.tasks.vocabulary import Vocabulary
from common.text import count
from common.wire.messages import HelperRequest
from server.clients.enrolment import Enrolment
from server.clients.roster import Roster
from server.exchange.grid import Liveness
from server.record.events import Event, Sum
from server.record.folder import RunDirectory
from server.record.privacy_statement import statement
from server.record.result import Privacy
from server.secure.helpers import HelperExchange
from server.secure.members import Membership
from server.secure.store import SUMS, SumStore
from server.secure.sums import HelperSums


def with_noise_of_helpers(config: RunConfig) -> RunConfig:
    """Return the configuration without the mechanism that its task prefers for noise of clients."""
    if config.privacy.mechanism != TASKS[config.task].trained.get("privacy.mechanism"):
        return config
    return config.model_copy(update={"privacy": config.privacy.model_copy(update={"mechanism": "gaussian"})})


def with_trust(config: RunConfig, trust: ResolvedTrust) -> RunConfig:
    """Return the configuration under the resolved trust."""
    privacy = config.privacy.model_copy(update={"trust": trust})
    if trust == "local":
        return config.model_copy(update={"privacy": privacy})
    federation, fewest = config.federation, config.secure_sums.fewest
    quorum = {"min_clients": max(federation.min_clients, fewest), "min_replies": max(federation.min_replies, fewest)}
    update = {"privacy": privacy, "federation": federation.model_copy(update=quorum)}
    return config.model_copy(update={**update, "secure_sums": config.secure_sums.model_copy(update={"renew": False})})


def with_groups(config: RunConfig, clients: int) -> RunConfig:
    """Return the configuration with its number of groups, where so many clients are online.

    Proven norms need none. Clusters are one sum, and so are the rounds of two phases, whose groups are combined in two ways.
    """
    capabilities = config.capabilities
    is_one = config.privacy.unit != "none" or config.first or capabilities.clusters
    members = 0 if is_one else math.floor(config.federation.cohort * clients)
    groups = config.secure_sums.groups_of(members, of_statistics=capabilities.closed_form)
    return config.model_copy(update={"secure_sums": config.secure_sums.model_copy(update={"groups": groups})})


log = logging.getLogger("fedloom.server")

PAUSE_SECONDS = 0.2  # between two looks for helpers


@dataclass(frozen=True)
class Parties:
    """Parties that a run relies on.

    Args:
        config: Configuration with the resolved trust; under `helpers`, no round has fewer clients than a sum needs.
        exchange: Exchange with nodes that help.
        store: Files of the run's sums.
        roster: Helpers of the run; None under trust `local`.
        local: Configuration under trust `local`; None if the run may not fall back to it.
    """

    config: RunConfig
    exchange: HelperExchange
    store: SumStore
    roster: HelperRoster | None = None
    local: RunConfig | None = None

    @property
    def are_optional(self) -> bool:
        """True if the run has helpers by itself, because they were online."""
        return self.roster is not None and self.local is not None

    @property
    def cards(self) -> list[str]:
        """Cards of the run's helpers, for the invitation of clients."""
        return self.roster.to_json() if self.roster else []

    def resolved(self, resolve: Callable[[RunConfig], RunConfig]) -> "Parties":
        """Return the parties with options `auto` of the task resolved."""
        return replace(self, config=resolve(self.config), local=self.local and resolve(self.local))

    def sums(self, on_sum: Callable[[Sum], None], clients: Roster) -> HelperSums | None:
        """Return the protocol of the clients' secure sums; None under trust `local`."""
        if self.roster is None:
            return None
        members = Membership(self.config.run_id, self.exchange, self.store, clients)
        return HelperSums(self.config, self.roster, members, self.exchange, self.store, on_sum)

    def without_helpers(self, reason: Exception) -> "Parties":
        """Return the parties of the same run under trust `local`."""
        log.warning("privacy.trust=auto: %s; the run is announced again with privacy.trust=local", reason)
        return replace(self, config=self.local or self.config, roster=None, local=None)

    def save(self) -> None:
        """Store the roster in the run's folder, from which a resumed run reads it."""
        if self.roster:
            self.store.write_roster(self.roster)

    def dismiss(self) -> None:
        """Let the helpers of a completed run delete its keys."""
        if self.roster:
            self.exchange.dismiss(self.roster.names)


def find_parties(
    grid: Grid,
    config: RunConfig,
    folder: RunDirectory,
    liveness: Liveness,
    find_oversize: Callable[[RunConfig], str] = lambda config: "",
) -> Parties:
    """Return the parties of a new or resumed run; the trust of a run never changes.

    `find_oversize` returns the reason why the vectors of a run are too large for sums.

    Raises:
        ConfigError: A resumed run has another trust, or is complete; or vectors are too large for sums.
        QuorumError: Too few helpers came within `secure-sums.wait`.
        StateError: The stored roster is damaged.
    """
    request = HelperRequest(config.run_id, to_json(config))
    exchange = HelperExchange(grid, request, config.secure_sums.deadline, liveness)
    store = SumStore(folder.path / SUMS, config.run_id)
    roster, local = None, None
    if config.resume:
        config = _continued(config, folder)
        roster = store.roster() if config.privacy.trust == "helpers" and not config.secure_sums.renew else None
        if roster:
            exchange.call(config.secure_sums.wait)
    elif config.privacy.trust == "auto":
        summed, local = with_noise_of_helpers(config), with_trust(config, "local")
        roster = _find_helpers(exchange, summed, find_oversize)
        config = summed if roster else config
    elif config.privacy.trust == "helpers" and (reason := find_oversize(config)):
        raise ConfigError(f"{reason}; set privacy.trust=local")
    if roster is None and config.privacy.trust == "helpers":
        roster = _await_helpers(exchange, config)
    if roster:
        online = len(exchange.online - exchange.helping)
        config = with_groups(config, max(online, config.federation.min_clients))
    return Parties(with_trust(config, "helpers" if roster else "local"), exchange, store, roster, local)


def _continued(config: RunConfig, folder: RunDirectory) -> RunConfig:
    """Return the configuration of a resumed run, with its own trust and its own values for `auto`."""
    stored, result = folder.config(), folder.result()
    began, options = stored.get("privacy.trust", "local"), config.task_options
    if config.privacy.trust not in ("auto", began):
        raise ConfigError(f"run '{config.run_id}' began with privacy.trust={began}; a run keeps its trust")
    if began == "helpers" and result and result.status == "completed":
        raise ConfigError(f"run '{config.run_id}' is complete, and its helpers have deleted its keys; start a new run")
    resolved = {  # a run without a stored value is older than the option, and trained as clients alone do
        name: stored.get(f"tasks.{config.task}.{kebab(name)}", alone)
        for name, alone in options.alone.items()
        if getattr(options, name) == "auto"
    }
    privacy, groups = config.privacy.model_copy(update={"trust": began}), config.secure_sums.groups
    secure = {"groups": groups or stored.get("secure-sums.groups", 1)}
    found = {"privacy": privacy, "secure_sums": config.secure_sums.model_copy(update=secure)}
    return config.model_copy(update={**found, "task_options": options.model_copy(update=resolved)})


def _await_helpers(exchange: HelperExchange, config: RunConfig) -> HelperRoster:
    options = config.secure_sums
    end = time.monotonic() + options.wait
    while not (roster := _choose(exchange, config)):
        left = end - time.monotonic()
        if left <= 0:
            raise QuorumError(
                f"{count(len(_cards(exchange)), 'helper')} online, {options.helpers} required after {options.wait:.0f} s;"
                " start them with fedloom helper, or set privacy.trust=local"
            )
        exchange.call(left)
        if not _choose(exchange, config):
            time.sleep(PAUSE_SECONDS)
    log.info("privacy.trust=helpers: %s add the noise", ", ".join(roster.names))
    return roster


def _find_helpers(
    exchange: HelperExchange, config: RunConfig, find_oversize: Callable[[RunConfig], str]
) -> HelperRoster | None:
    """Return the helpers of a run with trust `auto`; None, with a reason in the log, if it has no sums."""
    options, obstacle, online = config.secure_sums, find_obstacle(config), len(exchange.online)
    may_sum = not obstacle and online >= options.fewest + options.helpers
    if not may_sum and online <= config.federation.min_clients:
        return None  # every node may be a client
    exchange.call(options.wait)
    roster, names = _choose(exchange, config), sorted(card.name for card in _cards(exchange).values())
    reason = obstacle or _find_shortage(exchange, config) or find_oversize(config)
    if roster and not reason:
        log.info("privacy.trust=auto: %s are online, so sums are masked", ", ".join(roster.names))
        return roster
    if names:
        log.info("privacy.trust=auto: updates are not masked by %s: %s", ", ".join(names), reason)
    return None


def _find_shortage(exchange: HelperExchange, config: RunConfig) -> str:
    """Return how many helpers or clients are missing; empty if enough are online."""
    options, helpers, clients = config.secure_sums, len(_cards(exchange)), len(exchange.online - exchange.helping)
    if helpers < options.helpers:
        return f"{count(helpers, 'helper')} online, {options.helpers} required (secure-sums.helpers)"
    if clients < options.fewest:
        return f"{count(clients, 'client')} online, {options.fewest} required for a sum (secure-sums.min-sum)"
    return ""


def _choose(exchange: HelperExchange, config: RunConfig) -> HelperRoster | None:
    """Return the first helpers by name; None if there are too few."""
    cards, number = _cards(exchange), config.secure_sums.helpers
    return HelperRoster(tuple(cards[name] for name in sorted(cards)[:number])) if len(cards) >= number else None


def _cards(exchange: HelperExchange) -> dict[str, NodeCard]:
    return {card.name: card for card in exchange.cards.values() if card}


def find_oversize(config: RunConfig, vocabulary: Vocabulary) -> str:
    """Return the reason why a run's vectors are too large for secure sums; empty if they are not."""
    from common.models import build_model, parameters  # PyTorch, which a resumed run does not need

    spec, clusters = TASKS[config.task], config.capabilities.clusters
    if config.first and (reason := find_oversize(config.phases[0], vocabulary)):
        return reason
    if config.capabilities.closed_form:
        form = closed_form_of(config.task)
        first = form.template(form.start(config.task_run(spec, vocabulary)))
        first = widen(first) if config.capabilities.min_count else first
        if (numbers := sum(a.size for a in first.values())) > MOST_NUMBERS:
            return f"statistics of {numbers:,} numbers exceed the {MOST_NUMBERS:,} of a secure sum"
        return ""
    model = parameters(build_model(spec, config.task_run(spec, vocabulary)))
    numbers = count_numbers(config, model, summed=True)
    numbers += 2 * clusters or 1  # with weights, and the choice of a cluster
    if numbers > MOST_NUMBERS:
        models = f" for {clusters} clusters" if clusters else ""
        return f"an update of {numbers:,} numbers{models} exceeds the {MOST_NUMBERS:,} of a secure sum"
    return ""


def describe_privacy(config: RunConfig, enrolment: Enrolment, sharing: int, events: Iterable[Event]) -> Privacy:
    """Return the privacy statement of a run.

    `sharing` is the number of clients that sent their metrics.
    """
    spent = enrolment.roster.spent
    if not enrolment.helpers:
        return statement(config, spent, sharing)
    helpers = {card.name: card.fingerprint for card in HelperRoster.read(enrolment.helpers, config.run_id).cards}
    lost = [bool(event.lost) for event in events if isinstance(event, Sum)]
    return replace(
        statement(config, spent, sharing, [*helpers]),
        trust="helpers",
        helpers=helpers,
        min_sum=config.secure_sums.min_sum,
        sums={"opened": lost.count(False), "lost": lost.count(True)},
    )
