"""Order of policies, key by key."""

from typing import Any

import pytest

from client.owner.policy import Policy, find_looser

PINS = {"ann": "SHA256:" + "a" * 43}

STRICTER: dict[str, tuple[Any, Any]] = {
    "methods": (("fedavg",), ("fedavg", "fedrule")),
    "tasks": (("rules",), ("rules", "traffic")),
    "units": (("client",), ("client", "record")),
    "trust": (("helpers",), ("local", "helpers")),
    "helpers_on_first_use": (False, True),
    "serve_as_helper": (False, True),
    "max_epsilon": (1.0, 2.0),
    "delta": (1e-6, 1e-5),
    "max_epsilon_per_round": (0.5, 1.0),
    "require_noise": (True, False),
    "max_local_steps": (4, 0),
    "strict_property": (True, False),
    "min_sum": (9, 5),
    "min_helpers": (3, 2),
    "allow_counts": ("summed", "clear"),
    "allow_names": ("summed", "clear"),
    "allow_harm": ((), ("heat-when-open",)),
    "share_metrics": ("never", "without_noise"),
    "helpers": ({}, PINS),
}


@pytest.mark.parametrize("key", Policy.model_fields)
def test_a_key_allows_more_in_one_direction_alone(key: str) -> None:
    strict, loose = (Policy(**{key: value}) for value in STRICTER[key])
    assert key.replace("_", "-") in find_looser(loose, strict)
    assert key.replace("_", "-") not in find_looser(strict, loose)
    assert find_looser(loose, loose) == find_looser(strict, strict) == []
