"""2,000 requests with mutated terms at a client: typed errors only, and no more than one round is paid."""

import json
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from client.privacy.transforms import Released
from common.errors import FedloomError
from common.secure.terms import SumTerms, canonical
from tests.client.secure.test_training_sums import RHO, exact_blocks, summed
from tests.support.mutations import TIMES, mutated
from tests.support.summing import Summing


def test_mutated_terms_ask_for_no_less_noise_and_cost_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, config = random.Random(7), summed()
    server, arrays = Summing(config, 1), exact_blocks(config)[0]
    good = server.request(server.terms(arrays, RHO))
    accepted: list[str] = []

    def train(*work: object) -> Released:
        accepted.append(text)
        raise FedloomError("enough")

    monkeypatch.setattr("client.session.train", train)
    content = json.loads(good.terms)
    for _ in range(2_000 * TIMES):  # half of them are of one field
        text, field = mutated(chance, good.terms), chance.choice([*content])
        if chance.random() < 0.5:
            text = canonical({**content, field: mutated(chance, content[field])}).decode()
        with suppress(FedloomError):
            server.first.train(replace(good, terms=text))
    expected = SumTerms.from_json(good.terms)
    for one in map(SumTerms.from_json, accepted):
        assert replace(one, most=expected.most, noise=expected.noise, min_sum=expected.min_sum) == expected
        assert one.noise >= expected.noise
    assert 0 < server.spent <= RHO
