"""Audit of DP-SGD by one training (Steinke, Nasr and Jagielski 2023, arXiv 2305.08846).

Canary sessions are in or out of a silo's data by a fair coin. The silo trains as every client does. A hostile server sends the
same model in every round and guesses the coins from the sum of the updates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.func import grad, vmap

from client.data.dataset import Dataset
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.sessions.data.visitors import Visitor, as_clicks
from client.training.stacks import Tensors
from common.arrays import Flags, Floats
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters, tensors
from common.privacy.mechanisms import build_account, fresh_generator
from common.privacy.vectors import to_vector
from common.tasks.sessions.vocabulary import Items
from common.wire.messages import EnrolRequest, TrainRequest
from studies.audit.bounds import one_run_bound
from studies.audit.cases import DELTA, OneRun
from studies.audit.faults import inject
from studies.harness.experiment import Settings
from studies.harness.row import Metrics

CLIP, HIDDEN = 0.1, 32
"""Clip norm of a session's gradient, below those of all canaries, and width of the network."""

GUESSED = 0.1
"""Share of the canaries that are guessed to be in, and to be out; fixed before any run."""

RIDGE = 1e-3
"""Ridge of the regression of the update on the canaries' gradients."""


def audit_one_run(case: OneRun, seed: int, generator: Callable[[], np.random.Generator] = fresh_generator) -> Metrics:
    """Return claimed and audited ε, and the numbers of guesses and of right ones.

    Args:
        case: Training to audit.
        seed: Seed of the coins and of the initial model.
        generator: Factory of the random generator for privacy noise.
    """
    is_in = np.random.default_rng(seed).random(case.canaries) < 0.5
    config, items = _config(case, seed), Items(items=tuple(f"item-{k}" for k in range(2 * case.canaries)))
    with inject(case.fault, "record"):
        claimed, update = _train(config, items, is_in, case.rounds, generator)
    scores = _scores(_canary_gradients(config, items, case.canaries), update)
    count, order = round(GUESSED * case.canaries), np.argsort(scores)
    right = int((~is_in[order[:count]]).sum() + is_in[order[-count:]].sum())
    audited = one_run_bound(right, 2 * count, case.canaries, DELTA)
    return {"claimed_epsilon": claimed, "audited_epsilon": audited, "right": right, "guesses": 2 * count}


def _config(case: OneRun, seed: int) -> RunConfig:
    settings: Settings = {
        "method": "fedavg",
        "training.local-steps": 1,
        "training.lr": 1.0,
        "task": "sessions",
        "tasks.sessions.hidden": HIDDEN,
        "model": "paper",
        "privacy.unit": "record",
        "privacy.epsilon": case.epsilon,
        "privacy.delta": DELTA,
        "privacy.clip": CLIP,
        "privacy.sample": case.sample,
        "run-id": "audit",
        "seed": seed,
    }
    return parse(settings)


def _train(
    config: RunConfig, items: Items, is_in: Flags, rounds: int, generator: Callable[[], np.random.Generator]
) -> tuple[float, Floats]:
    """Return ε by the silo's ledger, and the sum of its updates."""
    releaser = in_memory(Policy(), generator)

    def build(config: RunConfig, vocabulary: Any) -> Learner:
        return build_learner(config, _canaries(vocabulary, is_in))

    session = Session("silo", build, MemoryStore(), releaser)
    enrolled = session.enrol(EnrolRequest("audit", to_json(config), items.to_json()))
    account, options = build_account(config.privacy), config.privacy
    cost = account.total(options.epsilon, options.delta) / rounds
    model = parameters(build(config, items).module)
    requests = (TrainRequest(number + 1, enrolled.enrolment, model, cost=cost) for number in range(rounds))
    update = sum(to_vector(session.train(request).update) for request in requests)
    return account.claim(releaser.budget.ledger(options).spent(), options.delta), np.asarray(update)


def _canaries(items: Items, is_in: Flags) -> Dataset[Items, Visitor]:
    """Return a visitor with one session of two clicks for each canary that is in; no two share an item."""
    visitors = (Visitor(f"canary-{k:06}", (as_clicks([2 * k, 2 * k + 1]),)) for k in np.flatnonzero(is_in).tolist())
    return Dataset(tuple(visitors), items)


def _canary_gradients(config: RunConfig, items: Items, canaries: int) -> Floats:
    """Return the clipped gradient of every canary at the initial model, canaries × numbers."""
    learner = build_learner(config, _canaries(items, np.ones(canaries, bool)))
    params = tensors(parameters(learner.module))

    def gradient(record: Tensors) -> Tensors:
        alone = {name: t.unsqueeze(0) for name, t in record.items()}
        found: Tensors = grad(learner.loss)(params, alone, {})
        return found

    each = vmap(gradient, chunk_size=64)(learner.batch(TrainRequest(1, "", {})))
    flat = torch.cat([each[name].flatten(1) for name in sorted(each)], 1).double()
    return np.asarray((flat * (CLIP / flat.norm(dim=1, keepdim=True)).clamp(max=1.0)).numpy())


def _scores(gradients: Floats, update: Floats) -> Floats:
    """Return the coefficients of the update in a ridge regression on the canaries' gradients."""
    products = gradients @ gradients.T
    ridge = RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    scores: Floats = np.linalg.solve(products + ridge, gradients @ update)
    return scores
