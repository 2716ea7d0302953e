"""Fingerprint of vocabulary and data split; runs with different ones are not comparable."""

import hashlib
import json

from common.config.run import RunConfig
from common.tasks.vocabulary import Vocabulary


def compute_fingerprint(config: RunConfig, catalogue: Vocabulary) -> str:
    """Return the SHA-256 of the task, its vocabulary and the options that decide on held-out data."""
    options = {key: getattr(config.task_options, key) for key in sorted(config.task_options.split_options)}
    text = json.dumps([config.task, catalogue.to_json(), options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
