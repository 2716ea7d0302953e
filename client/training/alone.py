"""Comparison of the finished model with one that the client trains on its own data alone."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from client.enrolment import BuildLearner, EnrolledRun
from client.state import MemoryStore
from client.training.comparison import MEASURED, Measured, from_document, paired_sums, values
from client.training.evaluation import evaluate_models
from client.training.local_round import train
from client.training.participant import ADAPT, Participant
from common.config.parse import configure_alone, is_comparable
from common.errors import FedloomError
from common.models import build_model, parameters
from common.tasks.registry import TASKS
from common.tasks.spec import ALONE, ALONE_PREFIX, ALONE_ROUNDS
from common.wire.messages import LOCAL, EvaluateReply, TrainRequest

DOCUMENT = "alone.json"
"""Name of the document in a run's state: metrics of the model trained alone; private."""

DEADLINE_SHARE = 0.5
"""Share of a round's time limit after which no further round alone begins."""

Steps = Callable[[int], int]
"""Number of local steps for a requested one, as the owner's policy limits it."""


def with_alone(
    run: EnrolledRun, participant: Participant, build: BuildLearner, steps: Steps, split: str, reply: EvaluateReply
) -> EvaluateReply:
    """Return the reply with the differences to a model trained alone; unchanged if the run asks for none.

    Args:
        run: The run.
        participant: The client, which has stored its measurement of the finished model.
        build: Reads the private data.
        steps: Limit of local steps.
        split: Split of the reply.
        reply: Reply for the finished model; it may be sent as it is.
    """
    comparison = TASKS[run.config.task].comparison
    if not run.config.federation.compare_alone or comparison is None or not is_comparable(run.config):
        return reply
    try:
        rounds, alone = _measure_once(run, participant, build, steps, split)
    except FedloomError:
        return reply
    shared = values(from_document(participant.store.read(participant.run, MEASURED)).units)
    other, metric = values(alone.units), comparison.metric
    if shared.shape != other.shape or not np.isfinite(shared - other).any() or metric not in alone.metrics:
        return reply
    sums = paired_sums(shared, other, higher_is_better=comparison.higher_is_better)
    metrics = {f"{ALONE_PREFIX}{metric}": alone.metrics[metric], ALONE_ROUNDS: float(rounds)}
    weights = {f"{ALONE_PREFIX}{metric}": alone.weights[metric], ALONE_ROUNDS: 1.0}
    paired = {**reply.paired, ALONE: sums}
    return replace(reply, metrics={**reply.metrics, **metrics}, weights={**reply.weights, **weights}, paired=paired)


def _measure_once(
    run: EnrolledRun, participant: Participant, build: BuildLearner, steps: Steps, split: str
) -> tuple[int, Measured]:
    """Return the number of rounds alone and the measurement, stored ones if there are any."""
    asked = {"rounds": run.config.rounds, "split": split}
    try:
        stored = json.loads(participant.store.read(participant.run, DOCUMENT))
        if stored["asked"] == asked:
            return int(stored["done"]), Measured(**stored["measured"])
    except (ValueError, KeyError, TypeError):
        pass  # none yet
    done, measured = _train_alone(run, participant, build, steps, split)
    document = {"asked": asked, "done": done, "measured": asdict(measured)}
    participant.store.write(participant.run, DOCUMENT, json.dumps(document).encode())
    return done, measured


def _train_alone(
    run: EnrolledRun, participant: Participant, build: BuildLearner, steps: Steps, split: str
) -> tuple[int, Measured]:
    """Train from the run's first model as many rounds as the run has, within half of a round's time limit."""
    end = time.monotonic() + DEADLINE_SHARE * run.config.federation.deadline
    config = configure_alone(run.config, run.config.rounds, run.config.catalogue)
    learner, spec, options = build(config, run.vocabulary), TASKS[config.task], config.method_options
    model = parameters(build_model(spec, config.task_run(spec, run.vocabulary)))
    request = TrainRequest(0, participant.request.enrolment, model)
    alone = replace(
        participant, learner=learner, store=MemoryStore(), request=request, steps=steps(options.steps(LOCAL))
    )
    done = 0
    while learner.examples and done < config.rounds and time.monotonic() < end:
        [trained] = train(options, [replace(alone, request=replace(request, round=done + 1))])
        if isinstance(trained, FedloomError):
            raise trained
        done += 1
    adapt = replace(request, round=done, phase=ADAPT)
    evaluate_models(config, replace(alone, request=adapt, steps=steps(options.steps(ADAPT))), split, final=True)
    return done, from_document(alone.store.read(alone.run, MEASURED))
