"""Texts of the guarantee of secure sums, for every combination of noise and pins."""

from dataclasses import replace

import pytest

from common.privacy.claims import COVERED, UNCOVERED, UNCOVERED_SUMS, Claim, describe_sums
from common.privacy.options import PrivacyOptions, Unit

NOISED = (
    "noise on sums of at least 5 clients: (ε = 2, δ = 1e-05) for any two contents of this client's data, against the server,"
    " all other clients and all helpers but one, if at least one of ann, bob followed the protocol and kept its key"
)
MASKED = (
    "masked sums of at least 5 clients, no noise: single updates are hidden from all helpers but one, and from a server that"
    " holds the keys of fewer than 4 members; what sums reveal is not bounded"
)
CLUSTERS = "; the sum has a part for each cluster, which may be that of one client, but does not say of which"
FIRST = "; keys of bob were taken from the server at first contact: a server that lied then is covered by nothing"
CLAIM = Claim("client", "replace-one", ("discrete-gaussian-sum",), "zcdp", 2.0, 1e-5, 0.1, 0.05, 1.4, local_epsilon=0.0)


@pytest.mark.parametrize(
    ("unit", "first", "text"),
    [
        ("client", (), NOISED),
        ("client", ("bob",), NOISED + FIRST),
        ("none", (), MASKED),
        ("none", ("bob",), MASKED + FIRST),
    ],
)
def test_the_guarantee_of_every_combination(unit: Unit, first: tuple[str, ...], text: str) -> None:
    options = PrivacyOptions(unit=unit, epsilon=2.0, trust="helpers")
    assert describe_sums(options, 5, ("ann", "bob"), first) == text


@pytest.mark.parametrize(("unit", "text"), [("client", NOISED), ("none", MASKED + CLUSTERS)])
def test_parts_of_clusters_are_named_without_noise(unit: Unit, text: str) -> None:
    options = PrivacyOptions(unit=unit, epsilon=2.0, trust="helpers")
    for first, addition in ((), ""), (("bob",), FIRST):
        assert describe_sums(options, 5, ("ann", "bob"), first, has_clusters=True) == text + addition


def test_a_ledger_of_sums_relies_on_a_helper_of_each_run() -> None:
    assert CLAIM.covers == COVERED["client"] + (
        "; secure sums against the server, all other clients and all helpers but one, if in each run at least one of its"
        " helpers followed the protocol and kept its key"
    )
    assert CLAIM.uncovered == UNCOVERED_SUMS
    assert not any("floating point" in channel for channel in UNCOVERED_SUMS), "this noise is exact in integers"


def test_a_ledger_of_both_kinds_names_the_part_that_relies_on_nobody() -> None:
    both = replace(CLAIM, local_epsilon=0.5)
    assert both.covers.endswith("; of this, ε = 0.5 holds without trust in a helper")
    assert {*both.uncovered} == {*UNCOVERED, *UNCOVERED_SUMS}


def test_a_ledger_without_sums_names_no_helper() -> None:
    local = replace(CLAIM, local_epsilon=None)
    assert (local.covers, local.uncovered) == (COVERED["client"], UNCOVERED)


def test_the_guarantee_of_a_sum_of_two_clients_names_no_number_of_keys() -> None:
    guarantee = describe_sums(PrivacyOptions(trust="helpers"), 2, ("ann", "bob"))
    assert guarantee == MASKED.replace("at least 5", "at least 2").replace(
        "the keys of fewer than 4 members", "no member's key"
    )
