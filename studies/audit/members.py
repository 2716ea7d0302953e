"""Attack on real uploads: guess if one session was in the data behind an update."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from client.data.read import read_all
from client.tasks.registry import build_learner
from client.tasks.sessions.data.visitors import Visitor
from common.arrays import Flags, Floats
from common.config.run import RunConfig
from common.privacy.mechanisms import fresh_generator
from common.tasks.sessions.vocabulary import Clicks
from studies.audit.cases import CLIENTS, SHADOWS, Upload
from studies.audit.uploads import config_of, first_update
from studies.harness.row import Metrics

FALSE_ALARMS = 0.01
"""Share of absent sessions that may be guessed present."""

ALL_TRAINED = {"tasks.sessions.test-share": 1e-6}
"""Settings under which no session is held out."""


def guess_members(upload: Upload, seed: int, generator: Callable[[], np.random.Generator] = fresh_generator) -> Metrics:
    """Return AUC and TPR, at a FPR of 1 %, of guesses if each client's last session was in its data.

    A fair coin leaves it in or out. The attacker has the session. Statistic of an update: its inner product with the update
    of that session alone. Shadow clients, half of them with the session, give its mean in both cases and its deviation;
    their likelihood ratio is the score (Carlini et al. 2022).

    Args:
        upload: Case of the attack.
        seed: Seed of the generated data, of the initial model and of the coins.
        generator: Factory of the random generator for privacy noise.
    """
    data = read_all(upload.task, f"demo:0-{CLIENTS + SHADOWS}", seed)
    config, exact = (config_of(one, seed, ALL_TRAINED) for one in (upload, replace(upload, epsilon=0.0)))

    def send(config: RunConfig, sessions: Sequence[Clicks]) -> Floats:
        part = replace(data, units=(Visitor("visitor", tuple(sessions)),))
        update = first_update(config, part, build_learner(config, part), generator)
        return np.concatenate([update[name].ravel() for name in sorted(update)]).astype(np.float64)

    shadows = [visitor.sessions for visitor in data.units[CLIENTS:]]
    half, victims = SHADOWS // 2, [visitor.sessions for visitor in data.units[:CLIENTS] if len(visitor.sessions) > 1]
    present = np.random.default_rng(seed).random(len(victims)) < 0.5
    without = np.stack([send(config, sessions) for sessions in shadows[half:]])
    scores = []
    for (*others, session), is_in in zip(victims, present, strict=True):
        direction = send(exact, [session])
        seen = float(send(config, [*others, session] if is_in else others) @ direction)
        with_it = np.array([send(config, [*sessions, session]) @ direction for sessions in shadows[:half]])
        scores.append(_log_ratio(seen, with_it, without @ direction))
    return quality(np.array(scores), present)


def _log_ratio(seen: float, present: Floats, absent: Floats) -> float:
    """Return the log-likelihood ratio of two normal distributions of one deviation, fitted to the shadows."""
    deviation = np.sqrt((present.var(ddof=1) + absent.var(ddof=1)) / 2)
    return float(((seen - absent.mean()) ** 2 - (seen - present.mean()) ** 2) / (2 * deviation**2))


def quality(scores: Floats, present: Flags) -> Metrics:
    """Return the AUC, and the TPR at a FPR of at most `FALSE_ALARMS`."""
    inside, outside = scores[present], np.sort(scores[~present])
    pairs = inside[:, None] - outside[None]
    threshold = outside[-1 - int(FALSE_ALARMS * len(outside))]
    return {"auc": float(((pairs > 0) + 0.5 * (pairs == 0)).mean()), "tpr": float((inside > threshold).mean())}
