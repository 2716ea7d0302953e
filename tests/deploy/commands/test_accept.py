"""Contract with a server from `join` to `accept`: invitation, file, policy or first offer, and changes of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.app import open_session
from client.checks import check_client
from client.owner.consent import read_consent
from client.session import Session
from client.settings import ClientSettings
from common.config.parse import parse, to_json
from common.contract import Contract
from common.errors import ConfigError, RefusedError
from common.options import Scalar
from common.tasks.rules.vocabulary import demo_catalogue
from common.wire.messages import EnrolRequest
from deploy.cli.app import app
from tests.support.invitations import make_toy_invitation

pytestmark = pytest.mark.usefixtures("here")

NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}


def command(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, words, input=answer)


def run(*words: str, answer: str = "") -> str:
    done = command(*words, answer=answer)
    assert done.exit_code == 0, done.exception
    return done.stdout + done.stderr


def offer(session: Session, name: str = "toy", **options: Scalar) -> None:
    config = parse({"run-id": name, "task": "rules", "method": "fedavg", "rounds": 3, **options})
    session.enrol(EnrolRequest(name, to_json(config), demo_catalogue().to_json()))


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Session, str]]]:
    """Return a function that joins without a connection, and returns the client and what the owner sees."""
    configs: list[dict[str, Scalar]] = []

    def resident(app: object, server: object, *, node_config: dict[str, Scalar], **rest: object) -> None:
        configs.append(node_config)

    monkeypatch.setattr("client.node.resident.run_resident", resident)
    monkeypatch.setattr("client.node.resident.leave_on_signals", lambda stop: None)

    def join(*words: str) -> tuple[Session, str]:
        where = () if "--invite" in words else ("--server", "train.example.org:9092", "--ca", "home/ca.pem")
        shown = run("join", *where, "--data", "demo:0-9", "--state-dir", "state", "--name", "ann", *words)
        for cached in (open_session, check_client):
            cached.cache_clear()
        return open_session(ClientSettings.from_node(configs[-1], "")), shown

    yield join
    open_session.cache_clear()
    check_client.cache_clear()


@pytest.fixture(autouse=True)
def code(here: Path) -> str:
    """Return the check code of an invitation with ε = 8."""
    invitation = make_toy_invitation(here / "home", method="fedavg", **NOISE)
    invitation.write(here / "i.fedloom")
    return invitation.code


def test_a_run_without_the_invited_noise_is_refused_until_the_owner_agrees(joined: Any) -> None:
    session, _ = joined("--invite", "i.fedloom")
    offer(session, "noisy", **NOISE)
    with pytest.raises(RefusedError, match="offered 'no noise'"):
        offer(session)
    shown = run("status", "--state-dir", "state")
    assert "the server offers terms beyond them; fedloom accept agrees to these" in shown
    assert "> privacy     noise on everything that a client sends: ε = 8" in shown
    assert "nothing was agreed to" in run("accept", "--state-dir", "state", answer="n\n")
    with pytest.raises(RefusedError, match="offered 'no noise'"):
        offer(session)
    agreed = run("accept", "--state-dir", "state", answer="y\n")
    assert f"agreed: terms {session.consent.read().agreed[-1].terms.short_hash} of ann" in agreed
    offer(session)
    assert "no server offers terms" in run("accept", "--state-dir", "state")
    again, shown = joined("--invite", "i.fedloom")
    offer(again)  # the invitation was agreed to before
    assert f"terms {again.consent.contract.short_hash} are agreed with this server" in shown


def test_the_server_is_known_by_its_authority_at_any_address(joined: Any) -> None:
    joined("--invite", "i.fedloom")
    session, _ = joined("--server", "10.0.0.7:1234")
    with pytest.raises(RefusedError, match="offered 'no noise'"):
        offer(session)
    [server] = read_consent(Path("state/ann")).servers
    assert server.startswith("SHA256:")


def test_a_wider_invitation_needs_its_check_code(joined: Any, here: Path, code: str) -> None:
    joined("--invite", "i.fedloom")
    wider = make_toy_invitation(here / "home", method="fedavg")
    wider.write(here / "wider.fedloom")
    done = command("join", "--invite", "wider.fedloom", "--data", "demo:0-9", "--state-dir", "state", "--name", "ann")
    assert isinstance(done.exception, ConfigError)
    assert "add its check code with --code to agree" in str(done.exception)
    assert "> privacy" in str(done.exception)
    session, _ = joined("--invite", "wider.fedloom", "--code", wider.code)
    offer(session)
    stored = session.consent.read().agreed
    assert [one.by for one in stored] == [f"invitation {code}", f"invitation {wider.code}"]


def test_without_an_invitation_the_owner_sees_the_worst_and_the_first_terms_hold(joined: Any) -> None:
    session, shown = joined()
    assert "at most, the policy allows a server:" in shown
    assert "plaintext   item ids, metrics, number of records, updates" in shown
    offer(session, **NOISE)
    with pytest.raises(RefusedError, match="offered 'no noise'"):
        offer(session, "exact")


def test_at_a_terminal_the_owner_is_asked_until_terms_are_agreed(joined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def join(answer: str = "") -> Result:
        words = ("--server", "train.example.org:9092", "--ca", "home/ca.pem", "--state-dir", "state", "--name", "ann")
        terminal = SimpleNamespace(isatty=lambda: True)
        with monkeypatch.context() as patch:
            patch.setattr("deploy.federation.agreement.sys", SimpleNamespace(stdin=terminal, stderr=terminal))
            return command("join", "--data", "demo:0-9", *words, answer=answer)

    assert isinstance(declined := join("n\n").exception, ConfigError)
    assert "not agreed; set stricter limits" in str(declined)
    agreed = join("y\n")
    assert (agreed.exit_code, "Take part under these limits?" in agreed.stderr) == (0, True)
    offer(joined()[0], **NOISE)
    assert join().exit_code == 0, "the terms are agreed to"


def test_terms_of_a_file_are_agreed_to(joined: Any) -> None:
    about = ("--task", "rules", "--method", "fedavg", "--rounds", "3", "--epsilon", "8")
    shown = run("preview", "--data", "demo:0-4", *about, "--terms", "terms.json", "--set", "privacy.trust=local")
    terms = Contract.model_validate_json(Path("terms.json").read_text())
    assert f"terms {terms.short_hash} of the run" in shown
    session, _ = joined("--accept", "terms.json")
    assert session.consent.contract == terms
    offer(session, "noisy", **NOISE)
    with pytest.raises(RefusedError, match="offered 'no noise'"):
        offer(session)
    Path("terms.json").write_text("{}")
    done = command("join", "--server", "x:1", "--insecure", "--accept", "terms.json", "--name", "bob")
    assert "terms.json holds no terms: 'tasks' Field required" in str(done.exception)


def test_an_owner_of_both_sides_is_not_asked(joined: Any) -> None:
    session, shown = joined("--accept", "policy")
    assert "at most, the policy allows a server:" in shown
    offer(session, **NOISE)
    offer(session, "exact", rounds=9)
    assert session.consent.contract.rounds == 9


def test_terms_are_shown_with_runs_and_budgets(joined: Any) -> None:
    session, _ = joined("--invite", "i.fedloom")
    found = json.loads(run("status", "--state-dir", "state", "--json"))
    [consent] = found["consents"]
    assert (consent["client"], consent["offered"]) == ("ann", None)
    assert Contract.model_validate(consent["agreed"][-1]["terms"]) == session.consent.contract
    shown = run("status", "--state-dir", "state")
    assert f"ann:\n  terms {session.consent.contract.short_hash} with server SHA256:" in shown
