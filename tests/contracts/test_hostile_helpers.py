"""Helpers that lie, and a server that lies about helpers: no false sum is opened, and single uploads stay hidden."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import Message

from common.errors import FedloomError, RefusedError, WireError
from common.secure.cards import NodeCard, make_card
from common.wire.codec import decode, encode
from common.wire.messages import OPEN, PREPARE, TRAIN, OpenReply, PrepareReply
from server.record.folder import RunDirectory
from tests.client.secure.test_training_sums import RHO, exact_blocks, summed
from tests.support.helpers import node_keys
from tests.support.sum_runs import SumFederation, losing, noised
from tests.support.summing import Summing

HELPER, LIAR = 5, "client-0"
"""Node of the first helper, and the client that it lies about."""


def exchanged_key(card: NodeCard) -> str:
    """Return a helper's card with a key of the server."""
    public = X25519PrivateKey.generate().public_key()
    return replace(card, key=make_card("x", card.run, node_keys(9)[8], public).key).to_json()


def exchanged_identity(card: NodeCard) -> str:
    """Return a valid card of another node under the helper's name."""
    return make_card(card.name, card.run, node_keys(9)[8], X25519PrivateKey.generate().public_key()).to_json()


def unsigned(card: NodeCard) -> str:
    """Return a card without a signature."""
    return replace(card, signature="").to_json()


@pytest.mark.parametrize(
    ("forge", "kind", "reason"),
    [
        (exchanged_key, WireError, "signature of 'helper-0' is invalid"),
        (unsigned, WireError, "signature"),
        (exchanged_identity, RefusedError, "secure sum: keys is not what this client requires"),
    ],
)
def test_a_server_cannot_have_seeds_sealed_to_a_key_of_its_own(
    forge: Callable[[NodeCard], str], kind: type[FedloomError], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, arrays = Summing(summed(), 1), exact_blocks(summed())[0]
    monkeypatch.setattr("client.session.train", lambda *work: pytest.fail("nothing may be computed"))
    terms = server.terms(arrays, RHO)
    forged = replace(terms, keys=(forge(server.helpers.roster.cards[0]), terms.keys[1]))
    with pytest.raises(kind, match=reason):
        server.first.train(server.request(forged, cost=RHO))
    assert server.spent == 0


def lying(kind: str, lie: Callable[[Any], Any]) -> Callable[[Message], Message]:
    """Return a hook that changes the answers of the first helper to messages of a kind."""

    def change(message: Message) -> Message:
        if message.metadata.message_type == kind and message.metadata.src_node_id == HELPER:
            reply = decode({PREPARE: PrepareReply, OPEN: OpenReply}[kind], message.content)
            message.content = encode(lie(reply))
        return message

    return change


def false_share(reply: PrepareReply) -> PrepareReply:
    """Return the answer with a random share in the check of the first client's norm."""
    shares = reply.shares["shares"].copy()
    shares[0] = np.frombuffer(secrets.token_bytes(shares.shape[1]), np.uint8)
    return replace(reply, shares={"shares": shares})


def test_a_helper_can_have_a_client_left_out_and_the_sum_is_that_of_the_others(tmp_path: Path) -> None:
    federation, honest = SumFederation(tmp_path / "lie"), SumFederation(tmp_path / "honest")
    federation.grid.after = lying(PREPARE, false_share)
    federation.run(noised(rounds=1))
    assert [(one.clients, list(one.rejected)) for one in federation.sums()] == [(3, [LIAR])]
    honest.grid.after = losing(TRAIN, [1])
    honest.run(noised(rounds=1))
    models = [RunDirectory(each.runs, "toy").load_model()[0] for each in (federation, honest)]
    for name, array in models[0].items():
        np.testing.assert_array_equal(array, models[1][name])


@pytest.mark.parametrize(
    ("kind", "lie", "reason"),
    [
        (PREPARE, lambda reply: replace(reply, round=7), "helper 'helper-0' answers for round 7"),
        (PREPARE, lambda reply: replace(reply, shares={}), "helper 'helper-0' sent shares of another size"),
        (OPEN, lambda reply: replace(reply, channel="evaluate"), "helper 'helper-0' answers for round 1, evaluate"),
        (OPEN, lambda reply: replace(reply, opened={}), "helper 'helper-0' sent numbers of another size"),
        (OPEN, lambda reply: replace(reply, missing=True), "a helper forgets the boxes it has opened"),
    ],
)
def test_an_answer_that_is_not_of_the_sum_loses_the_round_and_leaves_the_model(
    kind: str, lie: Callable[[Any], Any], reason: str, tmp_path: Path
) -> None:
    federation = SumFederation(tmp_path)
    federation.grid.after = lying(kind, lie)
    federation.run(noised(rounds=1))
    [lost] = federation.sums()
    assert lost.clients == 0
    assert reason in lost.lost
