"""Training replies under secure sums: what helpers and server open together, and what a client refuses."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client.privacy.transforms import Update, update_of
from client.secure import upload
from client.secure.helper import helper_service as desk
from client.secure.upload import Blocks
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import RefusedError, WireError
from common.secure.cards import MOST
from common.secure.layout import WEIGHT, SumLayout
from common.secure.noise import DiscreteGaussian
from common.secure.quantisation import decode, integer_clip
from common.secure.terms import MOST_CLIENTS, MOST_NOISE, MOST_NUMBERS, SumTerms
from common.wire.messages import LOCAL, AssignRequest, TrainReply
from tests.support.asked import Asked, configured
from tests.support.desks import CLIENTS
from tests.support.helpers import members
from tests.support.summing import POLICY, Summing

RHO = 0.125
METHODS = ["fedavg", "fedrule", "fedga"]


def summed(method: str = "fedavg", **privacy: Any) -> RunConfig:
    return configured(method, **{"trust": "helpers", **privacy})


def exact_blocks(config: RunConfig) -> list[Arrays]:
    """Return the blocks of three clients, from the replies that they send without masks."""
    plain = configured(config.method, unit="none", **{"federation.updates": "dense"})
    replies: list[TrainReply] = []
    for k in range(3):
        asked = Asked(plain, POLICY)
        asked.session.client = f"client-{k}"  # the client's name seeds its step inputs
        replies.append(asked.train(1, 0.0))
    return [Blocks(config, reply.steps).of(update_of(reply)).arrays for reply in replies]


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_the_opened_sum_is_that_of_the_plain_replies(method: str) -> None:
    config = summed(method, unit="none")
    blocks = exact_blocks(config)
    server = Summing(config)
    terms = server.terms(blocks[0])
    replies = server.train(server.request(terms))
    opened = decode(server.open(terms, replies).astype("<u8"), terms)
    expected = np.sum([SumLayout.of(one).vector(one) for one in blocks], axis=0)
    np.testing.assert_allclose(opened, expected, atol=1e-9)
    assert np.abs(expected).max() > 1e-6
    for reply in replies.values():
        assert (reply.update, reply.gradient, reply.loss, reply.examples) == ({}, {}, 0.0, 1)


def test_numbers_beyond_those_of_a_sum_are_clipped_and_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upload, "LARGEST", 1e-4)
    config = summed(unit="none")
    server = Summing(config)
    server.train(server.request(server.terms(exact_blocks(config)[0])))
    assert len([line for line in caplog.messages if "beyond ±0 in a secure sum; clipped to it" in line]) == 3


@pytest.mark.parametrize("method", ["fedavg", "fedrule", "fedga"])
def test_with_noise_uploads_are_clipped_integers_paid_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "discrete_gaussian", lambda scale, size, stream: np.zeros(size, np.int64))
    config = summed(method)
    server, arrays = Summing(config), exact_blocks(config)[0]
    terms = server.terms(arrays, RHO)
    replies = server.train(server.request(terms))
    numbers = server.open(terms, replies)
    assert 0 < int(numbers @ numbers) <= (3 * terms.bound) ** 2
    assert server.spent == DiscreteGaussian(terms.bound, "signed", terms.noise).privacy_cost.gdp <= RHO
    [entry] = server.first.releaser.budget.ledger(config.privacy).entries()
    assert entry.terms.trust == f"helpers:{server.helpers.roster.digest[:16]}"
    assert entry.terms.mechanism == "discrete-gaussian-sum"
    assert {reply.masked["sum"].dtype for reply in replies.values()} == {np.dtype(np.uint64)}


@pytest.mark.parametrize(("dra", "times"), [(True, math.sqrt(2)), (False, 1.0)])
def test_magnitudes_make_the_vector_longer_by_the_root_of_two(dra: bool, times: float) -> None:
    """One clip holds for both, so noise at equal ε weighs more on the update by that factor."""
    plain, config = configured("fedga", unit="none"), summed("fedga", **{"algorithm.fedga.dra": dra})
    update = update_of(Asked(plain, POLICY).train(1, 0.0))
    blocks = Blocks(config, 1).of(update).arrays
    sent, alone = (SumLayout.of(arrays).vector(arrays) for arrays in (blocks, update.arrays))
    assert np.linalg.norm(sent) == pytest.approx(times * np.linalg.norm(alone), rel=1e-6)
    assert alone.any()


def test_the_same_bytes_when_asked_again_and_other_terms_are_refused() -> None:
    config = summed()
    server, arrays = Summing(config), exact_blocks(config)[0]
    terms = server.terms(arrays, RHO)
    first = server.train(server.request(terms))["client-0"]
    again = server.first.train(server.request(terms))
    assert again.sealed == first.sealed
    np.testing.assert_array_equal(again.masked["sum"], first.masked["sum"])
    assert server.spent <= RHO
    with pytest.raises(RefusedError, match="already answered on other terms"):
        server.first.train(server.request(replace(terms, most=65)))


def test_noise_of_local_steps_is_paid_once_and_needs_none_of_helpers() -> None:
    config = summed(unit="record")
    server, arrays = Summing(config), exact_blocks(config)[0]
    terms = server.terms(arrays)
    request = replace(server.request(terms), cost=0.5)
    first, again = server.first.train(request), server.first.train(request)
    np.testing.assert_array_equal(again.masked["sum"], first.masked["sum"])
    assert first.masked["sum"].dtype == np.uint64
    plan, entry = server.first.releaser.budget.ledger(config.privacy).entries()
    releases = f"releases={int(server.spent / 0.5) + 1}"
    assert {(e.terms.mechanism, e.terms.trust) for e in (plan, entry)} == {
        (f"dp-sgd q=0.5 steps=3 {releases}", "local")
    }
    with pytest.raises(RefusedError, match="rho is not what this client requires"):
        server.first.train(replace(server.request(server.terms(arrays, RHO)), cost=0.5))


def test_uploads_without_noise_are_always_fresh() -> None:
    config = summed(unit="none")
    server = Summing(config)
    terms = server.terms(exact_blocks(config)[0])
    first, again = (server.first.train(server.request(terms)) for _ in range(2))
    assert np.mean(first.masked["sum"] != again.masked["sum"]) > 0.999


def test_the_control_variate_is_the_clients_own_part_before_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Σδ_k = 0 needs the clipped, rounded d_k that the server's mean holds."""
    monkeypatch.setattr(desk, "discrete_gaussian", lambda scale, size, stream: np.zeros(size, np.int64))
    config = summed("fedrule", clip=0.01)
    server, arrays = Summing(config), exact_blocks(config)[0]
    terms = server.terms(arrays, RHO)
    opened = decode(server.open(terms, server.train(server.request(terms))).astype("<u4"), terms)
    pending = [session.store.load("toy").groups["pending"] for session in server.sessions.values()]
    total = SumLayout.of(arrays).arrays(opened, arrays)
    rule = config.method_options
    for name in pending[0]:
        assert pending[0][name].numpy().dtype == server.model[name].dtype
        kept = sum(one[name].numpy() for one in pending)
        if f"gradient/{name}" in total:
            expected = total[f"gradient/{name}"]
        else:
            expected = total[f"update/{name}"] / (rule.lr * rule.local_steps)
        np.testing.assert_allclose(kept, expected, atol=1e-6)


CHANGES = {
    "run": {"run": "other"},
    "round": {"round": 2},
    "channel": {"channel": "evaluate"},
    "roster": {"roster": "1" * 64},
    "members": {"members": members("client-0", "zoe-1", "zoe-2", "zoe-3").digest},
    "members ": {"members": members(*CLIENTS).digests[2]},
    "layout": {},
    "rho": {"rho": 2 * RHO},
    "noise": {"noise": 4096},
    "sign": {"sign": "positive"},
    "bound": {"bound": 2048},
    "clip": {"clip": 0.5},
    "min_sum": {"min_sum": 2},
}
"""Field -> terms that differ in it from those that a client expects."""


@pytest.mark.parametrize("field", CHANGES)
def test_terms_that_a_client_refuses_before_it_computes(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = summed()
    server, arrays = Summing(config, 1, POLICY.model_copy(update={"min_sum": 3})), exact_blocks(config)[0]
    terms = server.terms(arrays, RHO, min_sum=3)
    changed = CHANGES[field] or {"layout": (("gradient", 1), ("update", terms.size - 1))}
    monkeypatch.setattr("client.session.train", lambda *work: pytest.fail("nothing may be computed"))
    with pytest.raises(RefusedError, match=f"secure sum: {field.strip()} "):
        server.first.train(server.request(replace(terms, **changed), cost=RHO))
    assert server.spent == 0


@pytest.mark.parametrize(("claimed", "weight"), [(1, 1), (999, 999), (1_001, 1_000), (10**9, 1_000)])
def test_a_claimed_number_of_records_has_one_limit_with_and_without_masks(claimed: int, weight: int) -> None:
    config = summed(unit="none", **{"training.weighting": "examples"})
    assert config.method_options.weight(claimed, config.secure_sums.most_examples) == weight
    update = Update({"update/w": np.ones(1)}, examples=claimed)
    assert Blocks(config, config.method_options.steps(LOCAL)).of(update).arrays[WEIGHT] == weight / 1_000


def test_sums_of_updates_have_no_repeat() -> None:
    server, arrays = Summing(summed(unit="none"), 1), exact_blocks(summed(unit="none"))[0]
    with pytest.raises(RefusedError, match="secure sum: channel is not what this client requires"):
        server.first.train(server.request(server.terms(arrays, channel="repeat/1")))


def test_no_sum_within_the_limits_of_terms_exceeds_its_integers() -> None:
    largest = integer_clip(MOST_NUMBERS)
    assert MOST_CLIENTS * largest + 9 * MOST * MOST_NOISE < 1 << 31


def test_requests_beside_the_sum_are_refused() -> None:
    config = summed()
    server, arrays = Summing(config, 1), exact_blocks(config)[0]
    with pytest.raises(RefusedError, match="no terms"):
        server.first.train(server.request("", cost=RHO))
    with pytest.raises(WireError, match="terms"):
        server.first.train(server.request("{}", cost=RHO))
    with pytest.raises(RefusedError, match="phase 'cluster'"):
        server.first.train(server.request(server.terms(arrays, RHO), phase="cluster"))
    with pytest.raises(RefusedError, match="alone"):
        server.first.assign(AssignRequest(1, server.enrolled[0].enrolment, {}, "loss", RHO))
    exact: SumTerms = server.terms(arrays)
    with pytest.raises(RefusedError, match="rho"):
        server.first.train(server.request(exact, cost=RHO))
    assert server.spent == 0


def test_the_number_of_records_stays_on_the_client() -> None:
    assert [reply.examples for reply in Summing(summed(unit="none")).enrolled] == [1, 1, 1]
