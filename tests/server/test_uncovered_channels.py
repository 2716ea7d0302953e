"""Uncovered channels of a run, by key: those of before their texts were rewritten, and copies of ledgers."""

import pytest

from common.config.parse import parse
from common.options import Scalar
from server.record.privacy_statement import statement

RENAMED = {
    "which records are held out for testing": "held-out records",
    "answers without noise": "replies without noise",
}

PLAIN = ["model updates", "training losses", "metrics", "numbers of records", "who takes part and when"]
NOISY = [
    *("metrics", "participation", "fit", "failures", "release times", "copies"),
    *("floating point", "answers without noise", "vocabulary", "tuning"),
]
HELD_OUT = "which records are held out for testing"
ITEMS: dict[str, Scalar] = {"task": "ratings", "model": "paper", "tasks.ratings.items": "paper"}

# keys of `statement(...).uncovered` at commit 48d3a75, and `copies` wherever noise is charged
BEFORE: list[tuple[dict[str, Scalar], list[str]]] = [
    ({}, PLAIN),
    ({"method": "fedstl", "task": "traffic"}, ["parameters of inferred properties", *PLAIN]),
    (ITEMS, ["item ids", *PLAIN]),
    ({"method": "ridge"}, ["exact sums of statistics", *PLAIN[2:]]),
    ({"method": "fedavg", "first": "ridge"}, ["exact sums of statistics", *PLAIN]),
    ({"privacy.unit": "client"}, NOISY),
    ({"privacy.unit": "client", "privacy.mechanism": "privunit"}, NOISY),
    ({**ITEMS, "privacy.unit": "client"}, ["item ids", *NOISY]),
    ({"privacy.unit": "record"}, ["metrics", "size", HELD_OUT, *NOISY[1:]]),
]


@pytest.mark.parametrize(("options", "before"), BEFORE)
def test_the_uncovered_channels_are_those_of_before(options: dict[str, Scalar], before: list[str]) -> None:
    config = parse({"method": "fedavg", "task": "rules", **options})
    keys = [channel.partition(":")[0].partition(",")[0] for channel in statement(config, {}, 2).uncovered]
    assert keys == [RENAMED.get(key, key) for key in before]
