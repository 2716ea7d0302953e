"""Clients of `fedloom join` whose policy says that they help."""

from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from typer.testing import CliRunner

from client.secure.helper.app import Respond
from common.errors import ConfigError
from common.node_names import fingerprint
from common.secure.cards import NodeCard
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, HELPER, HelperReply, HelperRequest
from deploy.cli.app import app
from deploy.keys.certificates import make_authority
from deploy.keys.nodes import load_private_key, make_node_key
from tests.support.toys import instruction

pytestmark = pytest.mark.usefixtures("here")

OPTIONS = ("join", "--server", "localhost:1", "--data", "demo:0-9", "--state-dir", "state", "--policy", "policy.toml")


def cards(monkeypatch: pytest.MonkeyPatch, policy: str) -> list[str]:
    """Return the cards that the client sends for a run; it must refuse an empty enrolment."""
    Path("policy.toml").write_text(policy)
    found: list[str] = []

    def resident(client: Respond, server: object, **rest: object) -> None:
        context = Context(1, 1, {"data": "demo:0-9", "state-dir": "state"}, RecordDict(), {})
        question = encode(HelperRequest("toy", "{}"))
        found.append(decode(HelperReply, client(instruction(1, question, HELPER), context).content).card)
        assert client(instruction(1, RecordDict(), ENROL), context).has_error()

    monkeypatch.setattr("client.node.resident.run_resident", resident)
    monkeypatch.setattr("client.node.resident.leave_on_signals", lambda stop: None)
    make_node_key(Path("node.key"))
    make_authority(Path())
    done = CliRunner().invoke(app, [*OPTIONS, "--ca", "ca.pem", "--key", "node.key", "--name", "ann"])
    assert done.exit_code == 0, done.exception
    return found


def test_a_helping_client_sends_a_card_signed_by_its_node_key(monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = cards(monkeypatch, "serve-as-helper = true\n")
    card = NodeCard.from_json(text)
    assert (card.name, card.run, card.serves) == ("ann-helper", "toy", "also")
    assert card.fingerprint == fingerprint(load_private_key(Path("node.key")).public_key())
    assert not Path("state/ann/helper").exists()


def test_by_default_a_client_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cards(monkeypatch, "") == [""]


def test_without_a_key_a_client_cannot_help() -> None:
    Path("policy.toml").write_text("serve-as-helper = true\n")
    refused = CliRunner().invoke(app, [*OPTIONS, "--insecure", "--name", "ann"]).exception
    assert isinstance(refused, ConfigError)
    assert "needs the node's key" in str(refused)
