"""Composition of a run's round: the one place that chooses method, intake, plan and evaluator."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from common.config.run import RunConfig
from common.registry import expect, naming_packages
from server.clients.enrolment import Enrolment
from server.methods.registry import SERVER_METHODS
from server.planning.plan import BudgetPlan
from server.planning.planner import RoundDecision, budget_of
from server.round.evaluation import Evaluator
from server.round.intake import SingleIntake
from server.round.method import Method
from server.round.plan import CostPlan
from server.round.round import Phase, Round, RoundObserver
from server.round.state import RunState
from server.round.strategy import adapt
from server.secure.intake import SecureIntake
from server.secure.metrics import MetricSums
from server.secure.sums import HelperSums


def build_method(config: RunConfig, state: RunState) -> Method:
    """Build the server step of the run's training method."""
    options = config.method_options
    build = SERVER_METHODS[options.name].build
    with naming_packages(SERVER_METHODS.packages(options.name)):
        return cast(Method, expect(adapt(build, options, config, state) or build(options), Method))


def build_round(
    config: RunConfig,
    state: RunState,
    enrolment: Enrolment,
    observer: RoundObserver | None = None,
    *,
    sums: HelperSums | None = None,
    folder: Path | None = None,
    on_decided: Callable[[RoundDecision], None] = lambda decision: None,
    decision: RoundDecision | None = None,
) -> Round:
    """Build the round of a run.

    Args:
        config: Configuration of the run.
        state: State of the run.
        enrolment: Clients of the run.
        observer: Record of the run; None records nothing.
        sums: Protocol of secure sums; None if the server receives single replies.
        folder: Folder for replies beyond what stays in memory; None: all stay there.
        on_decided: Callback with the decision of a planner before it is sent.
        decision: Last decision of a resumed run; it holds for the next round.
    """
    phases = []
    for number, each in enumerate(config.phases):
        method, plan = build_method(each, state), CostPlan()
        intake = SecureIntake(each, enrolment, method, sums) if sums else SingleIntake(each, enrolment, method, folder)
        if config.needs_planner:
            plan = BudgetPlan(each, enrolment.roster, budget_of(config, number), on_decided, decision, config)
        phases.append(Phase(each, method, intake, plan))
    evaluator = Evaluator(config, enrolment, method.assignment, MetricSums(config, sums) if sums else None)
    return Round(config, state, phases, evaluator, enrolment, observer or RoundObserver())
