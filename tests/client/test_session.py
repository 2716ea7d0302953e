"""One client's side of the conversation: enrolling, coming back after a restart, and what it keeps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import MODEL, Session
from client.state import DiskStore, MemoryStore, Store
from client.tasks.rules.learner import RulesLearner
from common.arrays import sha256
from common.config.parse import to_json
from common.config.run import RunConfig
from common.errors import DataError, FedloomError, RefusedError, WireError
from common.models import parameters
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.messages import EnrolRequest, EvaluateRequest, NamesRequest, TrainReply, TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, configured, toy_homes

CONFIG = configured("fedrule")
INVITATION = EnrolRequest("toy", to_json(CONFIG), CATALOGUE.to_json())
WORLD = parameters(task_model(CONFIG, CATALOGUE))


def learner(config: RunConfig, catalogue: RuleCatalogue) -> RulesLearner:
    return learner_of(config, catalogue, toy_homes(3))


def session(store: Store | None = None, policy: Policy | None = None) -> Session:
    return Session("ann", learner, store or MemoryStore(), in_memory(policy or Policy()))


def rounds(client: Session, enrolment: str, first: int, last: int, previous: TrainReply | None = None) -> TrainReply:
    """Train some rounds as the server would ask, every reply counted."""
    for number in range(first, last + 1):
        shared = {n: 0.5 * g for n, g in previous.gradient.items()} if previous else {}
        model = {n: a - 0.01 * number for n, a in WORLD.items()}
        previous = client.train(TrainRequest(number, enrolment, model, shared, number - 1 if previous else 0))
    assert previous is not None
    return previous


def test_enrolling_names_the_client_its_terms_and_its_records() -> None:
    reply = session().enrol(INVITATION)
    assert (reply.client, reply.examples) == ("ann", 3)
    assert reply.enrolment.startswith("toy:")
    assert session().enrol(INVITATION).enrolment == reply.enrolment, "the same invitation, the same fingerprint"
    other = replace(INVITATION, config=to_json(configured("fedrule", seed=1)))
    assert session().enrol(other).enrolment != reply.enrolment


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    through, store = session(DiskStore(tmp_path / "a")), DiskStore(tmp_path / "b")
    enrolment = through.enrol(INVITATION).enrolment
    expected = rounds(through, enrolment, 1, 4)

    before = session(store)
    before.enrol(INVITATION)
    second = rounds(before, enrolment, 1, 2)
    after = session(
        DiskStore(tmp_path / "b")
    )  # a new process: nothing but what lies on the disk, not even an invitation
    resumed = rounds(after, enrolment, 3, 4, second)
    assert (sha256(resumed.update), sha256(resumed.gradient)) == (sha256(expected.update), sha256(expected.gradient))
    assert "delta" in store.load("toy").groups

    forgetful = session(MemoryStore())
    forgetful.enrol(INVITATION)
    assert sha256(rounds(forgetful, enrolment, 3, 4, second).update) != sha256(expected.update), (
        "and the state mattered"
    )


def test_a_client_that_is_not_enrolled_says_so() -> None:
    client = session()
    for ask in (
        lambda: client.train(TrainRequest(1, "toy:0", WORLD)),
        lambda: client.evaluate(EvaluateRequest(1, "toy:0", WORLD, "test")),
        lambda: client.config("toy:0"),
    ):
        with pytest.raises(WireError, match="not enrolled in this run, or under another configuration"):
            ask()


def test_an_enrolment_under_another_configuration_is_not_this_one(tmp_path: Path) -> None:
    old = session(DiskStore(tmp_path)).enrol(INVITATION).enrolment
    session(DiskStore(tmp_path)).enrol(replace(INVITATION, config=to_json(configured("fedrule", lam=0.5))))
    with pytest.raises(WireError, match="not enrolled"):
        session(DiskStore(tmp_path)).config(old)


def test_an_invitation_cannot_name_a_place_outside_the_state_folder(tmp_path: Path) -> None:
    client = session(DiskStore(tmp_path / "state"))
    with pytest.raises(WireError, match="invalid run name"):
        client.enrol(replace(INVITATION, run="../../evil"))
    with pytest.raises(WireError, match="invalid run name"):
        client.train(TrainRequest(1, "../../evil:0", WORLD))
    assert list(tmp_path.iterdir()) == []


def test_a_client_reads_why_the_server_refuses_it() -> None:
    with pytest.raises(
        RefusedError, match=r"^the server does not admit this client: the name is taken � ; join with another$"
    ):
        session().enrol(replace(INVITATION, refusal="the name is taken \x1b[2J\n; join with another"))


def test_the_policy_speaks_before_any_data_are_read() -> None:
    def never(config: RunConfig, catalogue: RuleCatalogue) -> RulesLearner:
        raise AssertionError("the data were read")

    client = Session("ann", never, MemoryStore(), in_memory(Policy(methods=("fedavg",))))
    with pytest.raises(RefusedError, match="does not allow method 'fedrule'"):
        client.enrol(INVITATION)


def test_a_policy_that_changed_holds_for_runs_already_entered(tmp_path: Path) -> None:
    enrolment = session(DiskStore(tmp_path)).enrol(INVITATION).enrolment
    strict = session(DiskStore(tmp_path), Policy(methods=()))
    with pytest.raises(RefusedError, match="does not allow"):
        strict.train(TrainRequest(1, enrolment, WORLD))


def test_data_that_do_not_fit_are_a_refusal_without_their_names() -> None:
    def broken(config: RunConfig, catalogue: RuleCatalogue) -> RulesLearner:
        raise DataError("Grandma's lamp is unknown", "/home/ann/homes.csv", 3)

    with pytest.raises(RefusedError) as caught:
        Session("ann", broken, MemoryStore(), in_memory(Policy())).enrol(INVITATION)
    assert str(caught.value) == "this client's data do not match the run's vocabulary or format; see the client's log"


def test_no_names_are_sent_once_a_run_has_a_vocabulary() -> None:
    client = session(policy=Policy(allow_names="clear"))
    with pytest.raises(RefusedError, match="does not announce sums of names"):
        client.names(NamesRequest(client.enrol(INVITATION).enrolment))


def test_a_slow_machine_makes_fewer_steps_and_says_so() -> None:
    client = session(policy=Policy(max_local_steps=2))
    enrolment = client.enrol(INVITATION).enrolment
    assert client.train(TrainRequest(1, enrolment, WORLD)).steps == 2


def test_a_model_that_does_not_fit_is_refused_by_name() -> None:
    client = session()
    enrolment = client.enrol(INVITATION).enrolment
    bad = {**WORLD, "predictor.trigger.bias": np.zeros(9, np.float32)}
    with pytest.raises(WireError, match=r"the server's model: array 'predictor\.trigger\.bias' is float32\[9\]"):
        client.train(TrainRequest(1, enrolment, bad))


def test_divergence_is_reported_with_advice() -> None:
    client = session()
    invitation = replace(INVITATION, config=to_json(configured("fedavg", lr=1e30)))
    enrolment = client.enrol(invitation).enrolment
    with pytest.raises(FedloomError, match=r"local training diverged .* lower lr or set clip-norm"):
        client.train(TrainRequest(1, enrolment, WORLD))


def test_only_the_finished_model_is_stored() -> None:
    store = MemoryStore()
    client = session(store)
    request = EvaluateRequest(3, client.enrol(INVITATION).enrolment, WORLD, "test")
    reply = client.evaluate(request)
    assert (reply.round, reply.metrics.keys(), store.read("toy", MODEL)) == (3, reply.weights.keys(), b"")
    assert client.evaluate(replace(request, final=True)).metrics == reply.metrics
    assert sha256(load(store.read("toy", MODEL))) == sha256(WORLD)
    other = {name: a + 1 for name, a in WORLD.items()}
    client.evaluate(replace(request, model=other, final=True))
    assert sha256(load(store.read("toy", MODEL))) == sha256(other)
