"""Audit of one client's releases: two opposite contents, many runs of each, one event."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from common.privacy.accounts import epsilon_of_gdp
from common.privacy.mechanisms import PrivUnit, fresh_generator
from studies.audit.bounds import epsilon_bound, mu_bound
from studies.audit.cases import DELTA, Case
from studies.audit.faults import inject
from studies.audit.releases import CLIP, SIZE, AuditedClient, planted
from studies.audit.sums import AuditedSum, NoiseKey, fresh_key
from studies.harness.row import Metrics

Answers = Sequence[float]
"""All replies of one run, retries included: the first number, in units of C."""


def audit(
    case: Case,
    generator: Callable[[], np.random.Generator] = fresh_generator,
    noise_key: NoiseKey = fresh_key,
) -> Metrics:
    """Return the claimed and the audited privacy loss of a case, as the account counts and as ε.

    Args:
        case: Release to audit.
        generator: Factory of the random generator for privacy noise.
        noise_key: Source of the honest helper's keys of noise.
    """
    client = AuditedClient(case, generator)
    source = AuditedSum(client, noise_key) if case.way == "sum" else client
    event = _event(case, client.cost)
    counts = []
    with inject(case.fault, case.way):
        for side in (1.0, -1.0):
            counts.append(sum(event(_play(client, source, case.rounds, side)) for _ in range(case.trials)))
    hits, alarms = counts
    charged = client.charged / (2 * case.trials)
    bound = epsilon_bound if case.is_pure else mu_bound
    audited = bound(hits, alarms, case.trials)
    claimed = charged if case.is_pure else math.sqrt(2 * charged)
    of_epsilon = (claimed, audited) if case.is_pure else [epsilon_of_gdp(mu**2 / 2, DELTA) for mu in (claimed, audited)]
    epsilons = dict(zip(("claimed_epsilon", "audited_epsilon"), of_epsilon, strict=True))
    return {"claimed": claimed, "audited": audited, **epsilons, "hits": hits, "alarms": alarms, "trials": case.trials}


def _play(client: AuditedClient, source: AuditedClient | AuditedSum, rounds: int, side: float) -> Answers:
    """Return all replies of one run over the content of one side."""
    client.start_run()
    answers = [answer for number in range(rounds) for answer in source.answers(number + 1, planted(side))]
    client.end_run()
    return answers


def _event(case: Case, cost: float) -> Callable[[Answers], bool]:
    """Return the event, fixed before any draw.

    Gaussian noise: the mean lies on x's side of the middle. Pure mechanisms: every reply lies where the densities under the two
    contents differ by e^ε, which is beyond x (Laplace) or beyond the threshold around x (PrivUnitG).
    """
    if not case.is_pure:
        return lambda answers: sum(answers) > 0
    limit = 1.0
    if case.way == "privunit":
        mechanism = PrivUnit(cost, CLIP, SIZE)
        limit = mechanism.threshold * mechanism.noise / CLIP
    return lambda answers: min(answers) > limit
