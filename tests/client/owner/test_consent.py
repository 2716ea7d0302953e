"""Contract of a client with a server: first terms, refusals on both sides, agreement, and the ledger's hash."""

import stat
from pathlib import Path
from typing import Any

import pytest

from client.owner.consent import FILE, Consent, consents_in, read_consent, worst_of
from client.owner.policy import Policy, SharingPolicy
from client.privacy.release import Releaser
from client.privacy.simulation import MemoryLedgers
from client.session import Session
from client.state import MemoryStore
from common.config.parse import parse, to_json
from common.contract import terms_of
from common.errors import RefusedError, StateError
from common.models import parameters
from common.wire.messages import EnrolReply, EnrolRequest, TrainRequest
from tests.support.asked import learner
from tests.support.build import task_model
from tests.support.desks import Helpers
from tests.support.toys import CATALOGUE

SERVER = "SHA256:server"
NOISE = {"privacy.unit": "client", "privacy.epsilon": 8.0}


class Client:
    """Client with its consent on disk, under a server that offers any run."""

    def __init__(self, folder: Path, policy: Policy | None = None, **options: Any) -> None:
        self.consent = Consent(folder / "ann", SERVER, **options)
        policy = policy or Policy()
        self.releaser = Releaser(policy, MemoryLedgers(policy), consent=self.consent)
        self.first_contacts = folder / "helpers.json"
        self.session = Session("ann", learner, MemoryStore(), self.releaser, self.first_contacts)

    def enrol(self, run: str = "toy", helpers: list[str] | None = None, **options: Any) -> EnrolReply:
        config = parse({"run-id": run, "task": "rules", "method": "fedavg", "rounds": 5, **options})
        return self.session.enrol(EnrolRequest(run, to_json(config), CATALOGUE.to_json(), helpers or []))


def test_a_server_that_leaves_out_the_noise_is_refused_with_both_texts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The invitation says ε = 8; the run has no noise."""
    client = Client(tmp_path)
    agreed = terms_of(parse({"task": "rules", "method": "fedavg", "rounds": 5, **NOISE}))
    client.consent.agree(agreed, "invitation AAAA")
    with pytest.raises(RefusedError) as refused:
        client.enrol()
    assert "agreed 'noise on everything that a client sends: ε = 8" in str(refused.value)
    assert "offered 'no noise'" in str(refused.value)
    assert "offered 'metrics, number of records, updates'" in str(refused.value)
    assert "fedloom accept" in str(refused.value)
    assert "> privacy" in caplog.text
    assert client.enrol("noisy", **NOISE).budget > 0


def test_a_run_that_drops_helpers_is_another_contract(tmp_path: Path) -> None:
    """An owner who saw helpers is not enrolled again without them."""
    helpers = Helpers(2).roster.to_json()
    client = Client(tmp_path, Policy(helpers_on_first_use=True))
    client.enrol(helpers=helpers, **{"privacy.trust": "helpers"})
    assert client.consent.contract is not None
    assert len(client.consent.contract.helpers) == 2
    with pytest.raises(RefusedError, match=r"trust: agreed 'helpers that mask .*', offered 'the server, which sees"):
        client.enrol("plain")


def test_pins_of_helpers_imply_trust_in_them_alone(tmp_path: Path) -> None:
    pins = {"auditor": "SHA256:" + "a" * 43}
    assert SharingPolicy(helpers=pins).trust == ("helpers",)
    assert SharingPolicy(helpers=pins, trust=("local", "helpers")).trust == ("local", "helpers")
    assert SharingPolicy().trust == ("local", "helpers")
    with pytest.raises(RefusedError, match=r"privacy\.trust=local \(trust = helpers\)"):
        Client(tmp_path, Policy(helpers=pins)).enrol()


def test_helpers_of_an_agreement_that_the_owner_saw_are_pinned(tmp_path: Path) -> None:
    roster, summed = Helpers(2).roster, {"privacy.trust": "helpers"}
    config = parse({"task": "rules", "method": "fedavg", "rounds": 5, **summed})
    agreed = terms_of(config, [card.fingerprint for card in roster.cards])
    client = Client(tmp_path)
    with pytest.raises(RefusedError, match="0 helpers of this run are pinned"):
        client.enrol(helpers=roster.to_json(), **summed)
    client.consent.agree(agreed, "invitation AAAA")
    assert client.enrol(helpers=roster.to_json(), **summed).client == "ann"


def test_the_first_terms_are_the_most_and_the_owner_can_agree_to_more(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.enrol()
    client.enrol("shorter", rounds=2)
    with pytest.raises(RefusedError, match=r"length: agreed '5 rounds, .*', offered '6 rounds"):
        client.enrol("longer", rounds=6)
    assert stat.S_IMODE((tmp_path / "ann" / FILE).stat().st_mode) == 0o600
    [(name, of_owner)] = consents_in(tmp_path)
    offered = of_owner.read().offered
    assert name == "ann"
    assert offered is not None
    of_owner.agree(offered, "fedloom accept")
    client.enrol("longer", rounds=6)
    assert client.consent.hash == offered.hash
    assert [one.by for one in of_owner.read().agreed] == ["first offer", "fedloom accept"]
    assert of_owner.read().offered is None


def test_each_server_has_its_own_contract(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.enrol(rounds=2)
    other = Consent(tmp_path / "ann", "SHA256:other")
    assert other.contract is None
    other.check(terms_of(parse({"task": "sessions"})))
    assert other.contract is None, "the run may still be refused"
    other.settle()
    assert {*read_consent(tmp_path / "ann").servers} == {SERVER, "SHA256:other"}


def test_a_refused_offer_pins_no_helper(tmp_path: Path) -> None:
    client = Client(tmp_path, Policy(helpers_on_first_use=True))
    client.enrol("alone", **NOISE)
    with pytest.raises(RefusedError, match="trust: agreed"):
        client.enrol("toy", Helpers(2).roster.to_json(), **{**NOISE, "privacy.trust": "helpers"})
    assert not client.first_contacts.exists()


def test_an_owner_of_both_sides_agrees_to_what_the_policy_allows(tmp_path: Path) -> None:
    client = Client(tmp_path, Policy(tasks=("rules",)), follows_policy=True)
    client.enrol(rounds=2)
    client.enrol("longer", rounds=9)
    with pytest.raises(RefusedError, match="does not allow task 'sessions'"):
        client.enrol("other", task="sessions")
    assert [one.terms.rounds for one in client.consent.read().agreed] == [2, 9]


def test_without_a_folder_there_is_no_contract() -> None:
    consent = Consent()
    consent.check(terms_of(parse({})))
    assert (consent.contract, consent.hash, consent.pinned) == (None, "", ())


def test_a_damaged_or_newer_file_stops_the_client(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.enrol()
    path = tmp_path / "ann" / FILE
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(StateError, match=r"consent\.json cannot be read"):
        client.enrol("again", rounds=2)


def test_the_ledger_has_the_contract_of_each_release(tmp_path: Path) -> None:
    client = Client(tmp_path)
    reply = client.enrol(**NOISE)
    model = parameters(task_model(parse({"task": "rules", "method": "fedavg"}), CATALOGUE))
    client.session.train(TrainRequest(1, reply.enrolment, model, cost=0.05))
    ledger = client.releaser.budget.ledger(parse({**NOISE, "task": "rules"}).privacy)
    assert [entry.terms.contract for entry in ledger.entries()] == [client.consent.hash]
    first = client.consent.hash
    contract = client.consent.contract
    assert contract is not None
    client.consent.agree(contract.model_copy(update={"rounds": 9}), "fedloom accept")
    assert client.session.train(TrainRequest(1, reply.enrolment, model, cost=0.05)).update, "the same bytes, for free"
    client.session.train(TrainRequest(2, reply.enrolment, model, cost=0.05))
    assert [entry.terms.contract for entry in ledger.entries()] == [first, client.consent.hash]


def test_a_round_beyond_the_run_is_refused(tmp_path: Path) -> None:
    client = Client(tmp_path)
    reply = client.enrol()
    model = parameters(task_model(parse({"task": "rules", "method": "fedavg"}), CATALOGUE))
    client.session.train(TrainRequest(5, reply.enrolment, model))
    with pytest.raises(RefusedError, match="round 6 exceeds the 5 rounds of this run"):
        client.session.train(TrainRequest(6, reply.enrolment, model))


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({}, "plaintext   item ids, metrics, number of records, updates"),
        ({"max_epsilon": 4.0}, "noise on everything that a client sends: ε = 4, δ = 1e-05"),
        ({"max_epsilon": 4.0}, "plaintext   nothing"),
        ({"require_noise": True}, "noise on everything that a client sends: any ε"),
        ({"trust": ["helpers"], "min_sum": 7}, "at least 7 clients"),
        ({"allow_counts": "clear", "allow_names": "clear"}, "names, number of records, statistics, updates"),
        ({"tasks": [], "trust": []}, "task        none"),
    ],
)
def test_the_worst_that_a_policy_allows_is_stated(policy: dict[str, Any], text: str) -> None:
    assert text in "\n".join(worst_of(Policy.model_validate(policy)).lines())
