"""Event of the start of a run: the remark of its task."""

import pytest

from common.config.parse import parse
from common.options import Scalar
from common.tasks.registry import demo_vocabulary
from server.record.journal import describe_start

NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}
HELPERS: dict[str, Scalar] = {"privacy.trust": "helpers", "privacy.mechanism": "gaussian"}
REMARK = "noise at ε = 8 over 125 homes leaves nothing to learn; counts on secure sums, or more homes"


def remark_of(task: str, clients: int, options: dict[str, Scalar]) -> str:
    config = parse({"method": "fedavg", "task": task, "run-id": "r", "rounds": 1, **options})
    return describe_start(config, demo_vocabulary(task), (str(name) for name in range(clients))).remark


@pytest.mark.parametrize(
    ("task", "clients", "options", "remark"),
    [
        ("rules", 125, NOISE, REMARK),
        ("rules", 1_999, NOISE, REMARK.replace("125", "1,999")),
        ("rules", 2_000, NOISE, ""),
        ("rules", 125, {}, ""),
        ("rules", 125, NOISE | HELPERS, ""),  # it sums counts
        ("rules", 125, NOISE | HELPERS | {"tasks.rules.count-offset": False}, REMARK),
        ("rules", 5, {"privacy.unit": "record", "privacy.epsilon": 8.0}, ""),  # silos: homes are records
        ("sessions", 125, NOISE, ""),
    ],
)
def test_too_few_homes_for_noise_are_remarked_on(
    task: str, clients: int, options: dict[str, Scalar], remark: str
) -> None:
    assert remark_of(task, clients, options) == remark
