"""Error feedback: what an update leaves out is sent later, unless its round did not count."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from client.enrolment import fingerprint
from client.privacy.error_feedback import LEFT_OUT
from client.privacy.transforms import Released
from client.session import Session
from client.training.client_state import receive
from client.training.participant import Participant
from common.arrays import Arrays, add_prefix, group, norm, sub
from common.config.flatten import to_json
from common.models import parameters
from common.options import Scalar
from common.wire.form import Form
from common.wire.messages import EnrolRequest, TrainReply, TrainRequest
from deploy.simulation import InProcessGrid
from tests.contracts.test_encodings import encoded, trained_by
from tests.support.build import task_model
from tests.support.owners import owners
from tests.support.toys import CATALOGUE


def test_with_feedback_the_model_is_nearer_to_that_of_whole_numbers(tmp_path: Path) -> None:
    """In small steps, the models differ by the mean of what is left out at last."""
    options: dict[str, Scalar] = {"rounds": 6, "weighting": "uniform", "optimizer": "sgd", "lr": 0.01}
    people = owners(5)
    exact = trained_by(
        InProcessGrid(owners(5).sessions, 1), encoded(tmp_path, "float32", "fedavg", **options), tmp_path / "exact"
    )
    fed = trained_by(
        InProcessGrid(people.sessions, 1), encoded(tmp_path, "top-k", "fedavg", **options), tmp_path / "fed"
    )
    options["federation__error_feedback"] = False
    lossy = trained_by(
        InProcessGrid(owners(5).sessions, 1), encoded(tmp_path, "top-k", "fedavg", **options), tmp_path / "lossy"
    )
    kept = [group("after", load(store.read("toy", LEFT_OUT))) for store in people.stores.values()]
    missing = {n: sum(one[f"update/{n}"] for one in kept) / 5 for n in exact}
    assert norm(sub(sub(fed, exact), missing)) < 0.1 * norm(sub(fed, exact))
    assert norm(sub(fed, exact)) < norm(sub(lossy, exact))


def left_out(folder: Path, *asked: tuple[int, int]) -> tuple[TrainReply, Arrays]:
    """Return a new client's reply to the last of these requests (round, last counted round), and what it left out."""
    config, people = encoded(folder, "top-k", "fedavg", optimizer="sgd"), owners(1)
    session, [store] = people.sessions[1], people.stores.values()
    session.enrol(request := EnrolRequest("toy", to_json(config), CATALOGUE.to_json()))
    model = parameters(task_model(config, CATALOGUE))
    replies = [session.train(TrainRequest(r, fingerprint(request), model, shared_round=last)) for r, last in asked]
    return replies[-1], group("after", load(store.read("toy", LEFT_OUT)))


@pytest.mark.parametrize(
    ("asked", "as_if"),
    [
        ([(1, 0), (1, 0)], [(1, 0)]),
        ([(1, 0), (2, 0)], [(2, 0)]),
        ([(2, 0), (3, 2), (3, 2)], [(2, 0), (3, 2)]),
        ([(2, 0), (3, 2), (4, 2)], [(2, 0), (4, 2)]),
    ],
)
def test_a_round_that_did_not_count_leaves_nothing_behind(
    asked: list[tuple[int, int]], as_if: list[tuple[int, int]], tmp_path: Path
) -> None:
    (reply, kept), (expected, as_kept) = left_out(tmp_path, *asked), left_out(tmp_path, *as_if)
    equal(reply.update, expected.update)
    equal(kept, as_kept)


def test_what_a_counted_round_left_out_is_added_to_the_next(tmp_path: Path) -> None:
    (_, first), (second, then) = left_out(tmp_path, (1, 0)), left_out(tmp_path, (1, 0), (2, 1))
    fresh, missing = left_out(tmp_path, (2, 0))
    model = group("update", first)

    def read(reply: TrainReply) -> Arrays:
        return receive(Released(add_prefix("update", reply.update)), Form("top-k"), model)

    for name, e in first.items():
        exact = read(fresh)[name] + missing[name]
        np.testing.assert_allclose(read(second)[name] + then[name], exact + e, atol=1e-6)


def equal(left: Arrays, right: Arrays) -> None:
    assert left.keys() == right.keys()
    for name, a in left.items():
        np.testing.assert_array_equal(right[name], a, err_msg=name)


def test_a_server_names_the_last_counted_round_to_clients_with_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    people = owners(5)
    join = Session.participant

    def seen(self: Session, request: TrainRequest) -> Participant:
        rounds.append(request.shared_round)
        return join(self, request)

    monkeypatch.setattr(Session, "participant", seen)
    trained_by(InProcessGrid(people.sessions, 1), encoded(tmp_path, "top-k", "fedavg", rounds=3), tmp_path)
    assert rounds == [0] * 5 + [1] * 5 + [2] * 5
