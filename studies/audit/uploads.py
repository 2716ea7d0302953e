"""Attack on real uploads: items of a visitor and relations of a home, read from updates."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.rules.learner import RulesLearner
from client.tasks.sessions.learner import SessionsLearner
from common.arrays import Arrays, Floats, Ints
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters
from common.privacy.mechanisms import build_account, fresh_generator
from common.wire.messages import EnrolRequest, TrainRequest
from studies.audit.cases import CLIENTS, DELTA, Upload
from studies.harness.experiment import Settings
from studies.harness.row import Metrics


@dataclass(frozen=True)
class Target:
    """Names that an attack reads from an update.

    Args:
        own: Learner of a client -> indices of the names in its training data.
        score: Update -> a score of every name; larger ones are read first.
    """

    own: Callable[[Any], Ints]
    score: Callable[[Arrays], Floats]


def _items_of(learner: SessionsLearner) -> Ints:
    return np.unique(np.concatenate([clicks for split in learner.splits for clicks in split.train]))


def _relations_of(learner: RulesLearner) -> Ints:
    return np.unique(np.concatenate([split.train.positives[:, 2] for split in learner.splits]))


TARGETS = {
    ("sessions", "paper"): Target(
        _items_of, lambda update: np.linalg.norm(update["embedding.weight"][1:].astype(np.float64), axis=1)
    ),
    ("rules", "paper"): Target(_relations_of, lambda update: -update["predictor.second.bias"].astype(np.float64)),
    ("rules", "default"): Target(_relations_of, lambda update: -update["predictor.trigger.bias"].astype(np.float64)),
}
"""Task and model -> attack.

Items are ranked by the norm of their rows after the row of padding. Relations are ranked by the fall of their bias's loss.
"""


def read_names(upload: Upload, seed: int, generator: Callable[[], np.random.Generator] = fresh_generator) -> Metrics:
    """Return the precision of an attack and of popularity at the number of a client's own names.

    The attack scores a sum of updates of the first round. Popularity is the number of other clients with a name. Values are
    means over clients with at least one name.

    Args:
        upload: Case of the attack.
        seed: Seed of the generated data and of the initial model.
        generator: Factory of the random generator for privacy noise.
    """
    config, data = config_of(upload, seed), read_all(upload.task, f"demo:0-{CLIENTS}", seed)
    parts = partition(data, CLIENTS, unit=CLIENT_TASKS[upload.task].unit)
    target = TARGETS[upload.task, upload.model]
    learners = [build_learner(config, part) for part in parts]
    updates = [first_update(config, part, learner, generator) for part, learner in zip(parts, learners, strict=True)]
    own, groups = [target.own(learner) for learner in learners], range(0, CLIENTS, upload.together)
    sums = [{n: np.sum([u[n] for u in updates[k : k + upload.together]], axis=0) for n in updates[0]} for k in groups]
    scores = [target.score(update) for update in sums]
    names = np.arange(scores[0].size)
    counts = np.bincount(np.concatenate(own), minlength=names.size)
    pairs = [(scores[k // upload.together], items) for k, items in enumerate(own) if items.size]
    read = fmean(_precision(score, items) for score, items in pairs)
    popular = fmean(_precision(counts - np.isin(names, items), items) for _, items in pairs)
    return {"precision": read, "popularity": popular}


def config_of(upload: Upload, seed: int, more: Settings | None = None) -> RunConfig:
    """Return the configuration of the run to which the clients send their first update."""
    settings: Settings = {
        "method": "fedavg",
        "training.local-steps": upload.steps,
        "task": upload.task,
        "model": upload.model,
        "federation.updates": "dense",
        "privacy.unit": "client" if upload.epsilon else "none",
        "privacy.epsilon": upload.epsilon or 1.0,
        "privacy.delta": DELTA,
        "run-id": "audit",
        "seed": seed,
        **(more or {}),
    }
    return parse(settings)


def first_update(
    config: RunConfig, part: AnyDataset, learner: Learner, generator: Callable[[], np.random.Generator]
) -> Arrays:
    """Return the update of a client in the first round."""
    session = Session("client", lambda config, vocabulary: learner, MemoryStore(), in_memory(Policy(), generator))
    enrolled = session.enrol(EnrolRequest("audit", to_json(config), part.vocabulary.to_json()))
    options = config.privacy
    cost = build_account(options).total(options.epsilon, options.delta) if options.unit == "client" else 0.0
    return session.train(TrainRequest(1, enrolled.enrolment, parameters(learner.module), cost=cost)).update


def _precision(scores: Floats | Ints, items: Ints) -> float:
    """Return the share of a client's names among as many names of the largest scores."""
    return float(np.isin(np.argsort(-scores, kind="stable")[: len(items)], items).mean())
