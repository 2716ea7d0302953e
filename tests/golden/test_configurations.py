"""Texts of configurations are exact: enrolments of clients and resumed runs depend on them.

`python tests/golden/test_configurations.py` writes the stored digests anew.
"""

import hashlib
import itertools
import json
from pathlib import Path

import pytest

from common.config.parse import from_json, parse, to_json
from common.errors import ConfigError
from common.options import Scalar

TASKS = ("rules", "sessions", "traffic", "ratings", "markets")
METHODS = (
    *("fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad", "fedrule", "fedga", "fedrep", "ditto", "local"),
    *("ifca", "fedstl", "pfgnn", "bgtplanner", "uniform"),
)
STORED = Path(__file__).with_name("configurations.json")


def digests() -> dict[str, str]:
    """Return the digest of every valid configuration's text."""
    texts = {}
    for task, method, model, unit in itertools.product(TASKS, METHODS, ("default", "paper"), ("none", "client")):
        flat: dict[str, Scalar] = {"task": task, "method": method, "model": model, "privacy.unit": unit}
        try:
            text = to_json(parse(flat))
        except ConfigError:
            continue
        texts["-".join((task, method, model, unit))] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return texts


def test_texts_are_those_that_are_stored() -> None:
    assert digests() == json.loads(STORED.read_text("utf-8"))


@pytest.mark.parametrize("task", TASKS)
def test_a_text_is_read_back_as_its_configuration(task: str) -> None:
    config = parse({"task": task, "method": "fedavg"})
    assert from_json(to_json(config)) == config


if __name__ == "__main__":
    STORED.write_text(json.dumps(digests(), indent=0, sort_keys=True) + "\n", "utf-8")
