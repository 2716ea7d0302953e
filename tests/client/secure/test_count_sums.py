"""Counts of a client in secure sums: policy, clip, account and own part."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from client.owner.policy import Policy
from client.privacy.transforms import update_of
from client.secure.helper import helper_service as desk
from client.secure.upload import Blocks
from client.tasks.counts import COUNTS
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import RefusedError
from common.privacy.accounts import gdp_of
from common.secure.noise import DiscreteGaussian
from common.secure.quantisation import decode, noise_scale
from common.secure.terms import SumTerms
from common.tasks.rules.counts import zeros
from common.wire.messages import CountsRequest
from tests.support.asked import Asked, configured, learner
from tests.support.summing import POLICY, Summing
from tests.support.toys import CATALOGUE

ZEROS = zeros(CATALOGUE)


def counting(unit: str = "none", *, offset: bool = True) -> RunConfig:
    return configured(unit=unit, trust="helpers", **{"tasks.rules.count-offset": offset})


def exact_counts() -> Arrays:
    return learner(counting(), CATALOGUE).counts()


def terms_of(server: Summing) -> SumTerms:
    rho = server.config.count_cost
    noised = {"clip": 2.0, "sign": "positive", "noise": noise_scale(rho, 1024, "positive")} if rho else {}
    return server.terms(ZEROS, rho, round=0, channel="counts", **noised)


def asked(server: Summing, terms: str) -> CountsRequest:
    return CountsRequest(server.enrolled[0].enrolment, terms=terms)


def test_the_opened_sum_is_that_of_all_counts() -> None:
    server = Summing(counting(), policy=POLICY.model_copy(update={"allow_counts": "summed"}))
    terms = terms_of(server)
    replies = {name: s.counts(asked(server, terms.to_json())) for name, s in server.sessions.items()}
    assert not any(reply.counts for reply in replies.values())
    opened = decode(server.open(terms, replies).astype("<u8"), terms)
    np.testing.assert_array_equal(opened, 3 * exact_counts()["counts"].ravel())


def test_noised_counts_are_bounded_and_paid_from_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "discrete_gaussian", lambda scale, size, stream: np.zeros(size, np.int64))
    server = Summing(counting("client"), policy=Policy(min_sum=2, helpers_on_first_use=True))
    terms = terms_of(server)
    replies = {name: s.counts(asked(server, terms.to_json())) for name, s in server.sessions.items()}
    numbers = server.open(terms, replies)
    assert (numbers >= 0).all()
    exact = exact_counts()["counts"].ravel()
    assert exact.max() > 1, "the bound matters"
    bounded = np.minimum(exact, 1)
    bounded *= min(1, 2 / np.linalg.norm(bounded))
    opened = decode(numbers.astype("<u4"), terms)
    np.testing.assert_allclose(opened, 3 * bounded, atol=3 * terms.clip / terms.bound)
    own = [load(s.store.read("toy", COUNTS))["counts"].ravel() for s in server.sessions.values()]
    np.testing.assert_allclose(np.sum(own, axis=0), opened, atol=1e-5)
    assert server.spent == DiscreteGaussian(1024, "positive", terms.noise).privacy_cost.gdp
    assert server.spent <= server.config.count_cost == 0.5 * gdp_of(10.0, 1e-5)


@pytest.mark.parametrize("allowed", ["never", "summed"])
def test_the_policy_decides_on_counts_without_noise(allowed: str) -> None:
    server = Summing(counting(), 1, POLICY.model_copy(update={"allow_counts": "summed"}))
    server.first.releaser.policy = POLICY.model_copy(update={"allow_counts": allowed})
    request = asked(server, terms_of(server).to_json())
    if allowed == "summed":
        assert server.first.counts(request).sealed
        return
    with pytest.raises(RefusedError, match="inside secure sums"):
        server.first.counts(request)


def test_counts_beside_the_sum_are_refused() -> None:
    server = Summing(counting(), 1)
    with pytest.raises(RefusedError, match="no terms"):
        server.first.counts(asked(server, ""))
    noised = replace(terms_of(Summing(counting("client"), 1)), roster=server.helpers.roster.digest)
    with pytest.raises(RefusedError, match="rho"):
        server.first.counts(asked(server, noised.to_json()))
    plain = Summing(counting(offset=False), 1)
    with pytest.raises(RefusedError, match="does not announce such counts"):
        plain.first.counts(asked(plain, terms_of(plain).to_json()))


def test_sums_that_no_client_sent_are_refused_beside_noise() -> None:
    server = Summing(counting("client", offset=False), 1)
    plain = Asked(configured(unit="none", **{"federation.updates": "dense"})).train(1, 0.0)
    about = server.terms(Blocks(server.config, plain.steps).of(update_of(plain)).arrays, 0.125)
    with pytest.raises(RefusedError, match="clients send none in a run with noise"):
        server.first.train(server.request(about, statics=ZEROS))
