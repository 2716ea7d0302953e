"""Items and relations are read from one plain update, and no longer beside the client's own noise."""

import numpy as np
import pytest

from studies.audit import uploads
from studies.audit.cases import Upload


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "CLIENTS", 10)


@pytest.mark.parametrize("model", ["paper", "default"])
def test_a_plain_update_of_rules_shows_more_relations_than_popularity(model: str) -> None:
    found = uploads.read_names(Upload("", "", task="rules", model=model), 0)
    assert found["precision"] > found["popularity"] + 0.2


def test_a_plain_update_shows_every_item_and_a_sum_shows_fewer() -> None:
    alone, summed = (uploads.read_names(Upload("", "", together=n), 0) for n in (1, 10))
    assert alone["precision"] == 1
    assert summed["precision"] < 0.7
    assert alone["popularity"] == summed["popularity"] < 0.5


def test_beside_own_noise_an_update_shows_less_than_popularity() -> None:
    rng = np.random.default_rng(0)
    found = uploads.read_names(Upload("", "", epsilon=8.0), 0, lambda: rng)
    assert found["precision"] < found["popularity"]
