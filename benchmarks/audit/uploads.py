"""Attack on real uploads: the items of a visitor, read from updates of the paper's sessions model."""

from collections.abc import Callable
from statistics import fmean
from typing import Any, cast

import numpy as np

from benchmarks.audit.cases import DELTA, VISITORS, Upload
from benchmarks.harness.experiment import Settings
from benchmarks.harness.row import Metrics
from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.sessions.learner import SessionsLearner
from common.arrays import Floats, Ints
from common.config.flatten import to_json
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.privacy.mechanisms.registry import build_account
from common.privacy.randomness import fresh_generator
from common.wire.messages import EnrolRequest, TrainRequest

TABLE = "embedding.weight"
"""Array with a row of padding and one for each item."""


def read_items(upload: Upload, seed: int, generator: Callable[[], np.random.Generator] = fresh_generator) -> Metrics:
    """Return the precision of an attack and of popularity at the number of a visitor's own items.

    The attack ranks items by the norm of their rows in a sum of updates of the first round, popularity by the number of
    other visitors who have them. Values are means over visitors.

    Args:
        upload: Case of the attack.
        seed: Seed of the generated visitors and of the initial model.
        generator: Factory of the random generator for privacy noise.
    """
    config, data = _config(upload, seed), read_all("sessions", f"demo:0-{VISITORS}", seed)
    parts = partition(data, VISITORS, unit=CLIENT_TASKS["sessions"].unit)
    replies = [_train(config, part, f"visitor-{k:03}", generator) for k, part in enumerate(parts)]
    own, size = [items for items, _ in replies], len(data.vocabulary.items)
    sums = [
        np.sum([rows for _, rows in replies[k : k + upload.together]], axis=0)
        for k in range(0, VISITORS, upload.together)
    ]
    scores = [np.linalg.norm(rows[1:], axis=1) for rows in sums]
    counts = np.bincount(np.concatenate(own), minlength=size)
    read = fmean(_precision(scores[k // upload.together], items) for k, items in enumerate(own))
    popular = fmean(_precision(counts - np.isin(np.arange(size), items), items) for items in own)
    return {"precision": read, "popularity": popular}


def _config(upload: Upload, seed: int) -> RunConfig:
    settings: Settings = {
        "method": "fedavg",
        "algorithm.fedavg.local-steps": upload.steps,
        "task": "sessions",
        "model": "paper",
        "federation.updates": "dense",
        "privacy.unit": "client" if upload.epsilon else "none",
        "privacy.epsilon": upload.epsilon or 1.0,
        "privacy.delta": DELTA,
        "run-id": "audit",
        "seed": seed,
    }
    return parse(settings)


def _train(
    config: RunConfig, part: AnyDataset, name: str, generator: Callable[[], np.random.Generator]
) -> tuple[Ints, Floats]:
    """Return the items of the client's training sessions, and its update of the table of items."""
    learner = cast(SessionsLearner, build_learner(config, part))

    def build(config: RunConfig, vocabulary: Any) -> Learner:
        return learner

    session = Session(name, build, MemoryStore(), in_memory(Policy(), generator))
    enrolled = session.enrol(EnrolRequest("audit", to_json(config), part.vocabulary.to_json()))
    options = config.privacy
    cost = build_account(options).total(options.epsilon, options.delta) if options.unit == "client" else 0.0
    reply = session.train(TrainRequest(1, enrolled.enrolment, parameters(learner.module), cost=cost))
    items = np.unique(np.concatenate([clicks for split in learner.splits for clicks in split.train]))
    return items, reply.update[TABLE].astype(np.float64)


def _precision(scores: Floats | Ints, items: Ints) -> float:
    """Return the share of a visitor's items among as many items of the largest scores."""
    return float(np.isin(np.argsort(-scores, kind="stable")[: len(items)], items).mean())
