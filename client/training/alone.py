"""Models that clients train on their own data alone, for as many local steps as a federated run took."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np

from client.enrolment import BuildLearner, EnrolledRun
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.trainers.registry import build_trainer
from client.training.comparison import MEASURED, Measured, from_document, has_units, pair_with_alone
from client.training.evaluation import prepare_measurement
from client.training.foresight import foreseen
from client.training.local_round import train
from client.training.participant import ADAPT, TOGETHER, Participant, split_cohort
from common.arrays import Arrays
from common.config.parse import configure_alone, is_comparable
from common.config.run import RunConfig
from common.errors import FedloomError, RunError
from common.models import parameters_of
from common.tasks.registry import TASKS, closed_form_of
from common.tasks.spec import ALONE_PREFIX
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import LOCAL, EvaluateReply, TrainRequest
from common.wire.sparse_rows import expand

ALONE_DOCUMENT = "alone.json"
"""Name of the document in a run's state: metrics of the model trained alone; private."""

DEADLINE_SHARE = 0.5
"""Share of a round's time limit after which a client gives up training alone."""

MOST_STEPS = 64
"""Number of local steps whose random inputs are sampled at once."""

Steps = Callable[[int], int]
"""Number of local steps for a requested one, as the owner's policy limits it."""


def with_alone(
    run: EnrolledRun, participant: Participant, build: BuildLearner, steps: Steps, split: str, reply: EvaluateReply
) -> EvaluateReply:
    """Return the reply with the differences to a model trained alone; unchanged if the run asks for none.

    It is unchanged, too, if the client has no time for as many steps as the run took. The participant has stored its
    measurement of the finished model; `steps` limits local steps.
    """
    shared = from_document(participant.store.read(participant.run, MEASURED))
    if not run.config.federation.compare_alone or not is_comparable(run.config) or not has_units(shared):
        return reply
    try:
        alone = _measure_once(run, participant, build, steps, split)
    except FedloomError:
        return reply
    metric, paired = TASKS[run.config.task].objective.metric, pair_with_alone(run.config.task, shared, alone)
    if not paired or metric not in alone.metrics:
        return reply
    metrics = {**reply.metrics, f"{ALONE_PREFIX}{metric}": alone.metrics[metric]}
    weights = {**reply.weights, f"{ALONE_PREFIX}{metric}": alone.weights[metric]}
    return replace(reply, metrics=metrics, weights=weights, paired={**reply.paired, **paired})


def _measure_once(
    run: EnrolledRun, participant: Participant, build: BuildLearner, steps: Steps, split: str
) -> Measured:
    """Return the measurement of the model trained alone, a stored one if there is any."""
    rounds = participant.request.round
    try:
        stored = json.loads(participant.store.read(participant.run, ALONE_DOCUMENT))
        if stored["split"] == split and stored["rounds"] >= rounds:
            return Measured(**stored["measured"])
    except (ValueError, KeyError, TypeError):
        pass  # none yet
    end = time.monotonic() + DEADLINE_SHARE * run.config.federation.deadline
    config = configure_alone(run.config, rounds)
    learners = {participant.client: build(config, run.vocabulary)}
    late, device = (lambda: time.monotonic() > end), participant.device
    measured = measure_alone(config, run.vocabulary, learners, split, steps, late, device)
    document = {"rounds": rounds, "split": split, "measured": asdict(measured[participant.client])}
    participant.store.write(participant.run, ALONE_DOCUMENT, json.dumps(document).encode())
    return measured[participant.client]


def measure_alone(
    config: RunConfig,
    vocabulary: Vocabulary,
    learners: dict[str, Learner],
    split: str,
    steps: Steps = lambda requested: requested,
    is_late: Callable[[], bool] = lambda: False,
    device: str = "cpu",
) -> dict[str, Measured]:
    """Train clients alone, stacked, and return each one's measurement of its model.

    The result does not depend on the clock. A client's model is dropped once it is measured.

    Args:
        config: Configuration of `configure_alone`.
        vocabulary: Vocabulary of the run.
        learners: Client -> its data, under that configuration; all are held in memory.
        split: Data split of the measurement.
        steps: Limit of local steps.
        is_late: Function that returns True if the training must end.
        device: Device of the training.

    Raises:
        RunError: `is_late` returned True.
        FedloomError: The statistics of a client cannot be solved.
    """
    options, closed_form = config.method_options, config.capabilities.closed_form
    first = parameters_of(config, vocabulary)
    request, asked = TrainRequest(0, "", first), steps(options.steps(LOCAL))
    measured: dict[str, Measured] = {}
    by_size = sorted(learners, key=lambda name: learners[name].size)
    for names in split_cohort(by_size, learners.__getitem__, TOGETHER):
        about = ((name, config.run_id, config.seed, learners[name]) for name in names)
        clients = [Participant(*each, MemoryStore(), request, asked, device=device) for each in about]
        if closed_form:
            clients = [_solve(config, vocabulary, client) for client in clients]
        else:
            _train(config, [client for client in clients if client.learner.examples], is_late)
        adapt, most = replace(request, round=config.rounds, phase=ADAPT), steps(options.steps(ADAPT))
        members = [replace(c, request=replace(adapt, statics=c.request.statics), steps=most) for c in clients]
        prepared = [prepare_measurement(config, member, split, final=True) for member in members]
        with foreseen(question for one in prepared for question in one.questions):
            for member, one in zip(members, prepared, strict=True):
                one.reply(with_baselines=False)
                measured[member.client] = from_document(member.store.read(member.run, MEASURED))
    return measured


def _train(config: RunConfig, clients: Sequence[Participant], is_late: Callable[[], bool]) -> None:
    """Train clients stacked for all steps of the run; a diverged one stays at its last finite model."""
    remaining, number = config.rounds * clients[0].steps if clients else 0, 0
    while remaining and clients:
        if is_late():
            raise RunError("training alone takes too long")
        steps, number = min(remaining, MOST_STEPS), number + 1
        asked = [replace(one, steps=steps, request=replace(one.request, round=number)) for one in clients]
        replies = train(config.method_options, asked)
        pairs = zip(clients, replies, strict=True)
        clients, remaining = [one for one, reply in pairs if not isinstance(reply, FedloomError)], remaining - steps


def _solve(config: RunConfig, vocabulary: Vocabulary, client: Participant) -> Participant:
    """Return the client with the solution of the task's closed form by its own statistics alone."""
    form, options = closed_form_of(config.task), config.method_options
    trainer, solved = build_trainer(options), form.start(config.task_run(TASKS[config.task], vocabulary))
    for _ in range(config.rounds):
        asked = replace(client, request=replace(client.request, statics=solved))
        found = expand(trainer.statistics(asked), form.template(solved))
        sums: Arrays = {name: np.asarray(a, np.float64) for name, a in found.items()}
        solved = form.solve(solved, sums, float(getattr(options, "strength", 0.0)))
    return replace(client, request=replace(client.request, statics=solved))
