"""Event of the start of a run; pure."""

import hashlib
import json
from collections.abc import Iterable

from common.config.run import RunConfig
from common.privacy.mechanisms.registry import build_account
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from server.events import Start


def describe_start(config: RunConfig, catalogue: Vocabulary, clients: Iterable[str]) -> Start:
    """Return the event of the start of a run, or of its continuation, with these clients."""
    names = sorted(clients)
    return Start(
        run=config.run_id,
        method=config.method,
        task=config.task,
        model=config.model,
        seed=config.seed,
        rounds=config.rounds,
        account=build_account(config.privacy).name if config.privacy.unit != "none" else "",
        simple=dict(TASKS[config.task].simple),
        split="validation" if config.task_options.validation_share else "",
        fingerprint=compute_fingerprint(config, catalogue),
        clients=names,
        remark=TASKS[config.task].remark(config.task_options, config.privacy, len(names)),
    )


def compute_fingerprint(config: RunConfig, catalogue: Vocabulary) -> str:
    """Return the SHA-256 of the task, its vocabulary and the options that decide on held-out data.

    Runs with different ones are not comparable.
    """
    options = {key: getattr(config.task_options, key) for key in sorted(config.task_options.split_options)}
    text = json.dumps([config.task, catalogue.to_json(), options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
