"""One DP-SGD training with canary sessions keeps to its claim, and without its noise does not."""

import numpy as np
import pytest

from studies.audit.cases import NOISELESS, OneRun
from studies.audit.one_run import audit_one_run
from studies.harness.row import Metrics


def audited(case: OneRun) -> Metrics:
    rng = np.random.default_rng(0)
    return audit_one_run(case, 0, lambda: rng)


def test_the_guesses_bound_epsilon_from_below() -> None:
    found = audited(OneRun(200, 8.0))
    assert found["claimed_epsilon"] == pytest.approx(8.0)
    assert 0.5 < found["audited_epsilon"] <= 8.0


def test_sampled_records_over_rounds_keep_to_the_claim_of_the_whole_run() -> None:
    found = audited(OneRun(100, 8.0, sample=0.5, rounds=3))
    assert found["claimed_epsilon"] == pytest.approx(8.0)
    assert found["audited_epsilon"] <= 8.0


def test_without_noise_every_guess_is_right_and_the_claim_is_refuted() -> None:
    found = audited(OneRun(200, 2.0, fault=NOISELESS))
    assert found["right"] == found["guesses"]
    assert found["audited_epsilon"] > 2.0
