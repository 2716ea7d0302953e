"""Texts of sizes, times and privacy statements."""

from dataclasses import replace

import pytest

from common.text import size
from deploy.pages.statement import cost, counted, describe, strength
from deploy.pages.view import duration, first_line
from server.record.result import Privacy


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (412_300, "412 kB"),
        (99_960, "100 kB"),
        (2_500_000, "2.5 MB"),
        (3e15, "3000 TB"),
    ],
)
def test_size(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.418, "0.42 s"), (12.64, "12.6 s"), (185, "3 min 05 s"), (3599.7, "1 h 00 min"), (7620, "2 h 07 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


NOISY = Privacy(
    unit="client",
    mechanism="Gaussian noise",
    epsilon_spent_max=3.14159,
    delta=1e-5,
    uncovered=["tuning: much", "counts"],
    epsilon=4.0,
    neighbours="replace-one",
    account="zcdp",
)


def test_a_guarantee_has_a_sentence_and_exact_terms() -> None:
    claim, terms = describe(NOISY)
    assert "can distinguish its data from any other data better than ε allows" in claim
    assert claim.endswith(
        "ledger stops at ε = 4, δ = 1e-05 for this run, whatever the server requests: a reasonable guarantee (ε up to 10)."
    )
    assert terms == {
        "spent": ("at most ε = 3.14, δ = 1e-05 requested from a client; for planning, not the guarantee",),
        "terms": ("unit client", "replace-one", "Gaussian noise", "counted in zCDP (ρ)"),
        "not covered": ("tuning: much", "counts"),
    }


def test_pure_privacy_has_no_delta_and_records_are_named() -> None:
    claim, terms = describe(replace(NOISY, unit="record", delta=None, account="pure", epsilon=0.5))
    assert "δ" not in claim + terms["spent"][0]
    assert "if any single record was in its data" in claim
    assert terms["terms"][-1] == "counted in pure differential privacy (ε)"


def test_weights_that_noise_makes_uniform_are_stated() -> None:
    assert describe(replace(NOISY, weights="uniform: why"))[1]["terms"][-1] == "weights uniform: why"


@pytest.mark.parametrize(
    ("epsilon", "tier"), [(1.0, "strong"), (1.1, "reasonable"), (10.0, "reasonable"), (11, "weak")]
)
def test_an_epsilon_has_its_tier(epsilon: float, tier: str) -> None:
    assert strength(epsilon).startswith(f"a {tier} guarantee")


def test_costs_have_the_unit_of_their_account() -> None:
    assert [cost(a, 0.01553) for a in ("zcdp", "pure", "rdp-32")] == ["ρ 0.0155", "ε 0.0155", "RDP 0.0155"]
    assert counted("rdp-32") == "Rényi divergence of order 32"
    assert counted("prv-1e-05") == "Gaussian DP (μ²/2) of all releases together"


def test_a_run_without_privacy_has_no_guarantee() -> None:
    claim, terms = describe(Privacy(unit="none", mechanism="", epsilon_spent_max=None, delta=None, uncovered=["all"]))
    assert claim.startswith("No differential privacy")
    assert terms == {"not covered": ("all",)}


def test_a_stack_trace_is_cut_to_its_first_line() -> None:
    assert first_line("  boom\n  File x") == "boom"
    assert first_line("x" * 200) == "x" * 159 + "…"


def test_secure_sums_name_their_trust_in_place_of_noise_of_the_client() -> None:
    claim, _ = describe(replace(NOISY, guarantee="noise on sums if ann followed the protocol"))
    assert claim.startswith(
        "Secure sums: noise on sums if ann followed the protocol. Each client's own ledger stops at"
    )
    bare = Privacy(unit="none", mechanism="", epsilon_spent_max=None, delta=None, guarantee="masked sums")
    assert describe(bare)[0] == "No differential privacy: masked sums."
