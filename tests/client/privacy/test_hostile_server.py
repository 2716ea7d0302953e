"""Requests of a hostile server, or of a second process, that try to avoid noise or budget."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.privacy.dp_sgd import DpSgdNoise
from client.privacy.ledger.database import MEMORY, Slot
from client.privacy.ledger.ledger import Ledger, Limits
from client.privacy.ledger.locate import open_ledger
from client.privacy.release import Releaser
from client.state import MemoryStore
from client.training.descent import _sample_inputs
from client.training.participant import Participant
from client.training.stacks import stack
from common.config.parse import to_json
from common.errors import RefusedError, WireError
from common.models import tensors
from common.privacy.accounts import Rdp, Zcdp, epsilon_of_gdp, gdp_of
from common.privacy.mechanisms import Gaussian
from common.privacy.options import Unit
from common.wire.messages import EnrolRequest, TrainRequest
from tests.support.asked import Asked, configured, learner
from tests.support.toys import CATALOGUE


def ledger(unit: Unit = "client", epsilon: float = 10.0) -> Ledger:
    return Ledger(MEMORY, unit, Zcdp(), epsilon, 1e-5)


@pytest.mark.parametrize("changed", [{"unit": "record"}, {"unit": "none"}])
def test_what_is_remembered_of_one_run_is_no_use_in_another_of_its_name(changed: dict[str, str]) -> None:
    """FedRule's control variates are exact under unit `client`, and would travel beside the noise of unit `record`."""
    client = Asked(configured("fedrule"))
    client.train(1, 0.1)
    again = EnrolRequest("toy", to_json(configured("fedrule", **changed)), CATALOGUE.to_json())
    with pytest.raises(RefusedError, match="had another privacy"):
        client.session.enrol(again)
    with pytest.raises(WireError, match="not enrolled"):
        client.session.train(TrainRequest(2, f"toy:{'0' * 16}", client.model, cost=0.1))
    with pytest.raises(RefusedError, match="had another method"):
        client.session.enrol(replace(again, config=to_json(configured("fedavg"))))
    client.session.enrol(EnrolRequest("toy", to_json(configured("fedrule", epsilon=9.0)), CATALOGUE.to_json()))


def test_masks_beside_noise_on_records_are_nobody_elses_to_know() -> None:
    """Row k's mask depends on how many homes there are: whoever knew the seed would see one home less in all gradients."""
    config = configured("fedavg", unit="record")
    homes, request = learner(config, CATALOGUE), TrainRequest(1, "toy:0", {})

    def masks(noise: DpSgdNoise | None) -> np.ndarray:
        member = Participant("ann", "toy", 0, homes, MemoryStore(), request, 2, noise)
        drawn = _sample_inputs(member, stack([tensors(Asked(config).model)]), 0, 1)
        return np.asarray(drawn["keep"].numpy())

    secret = [DpSgdNoise(1.0, 1.0, 0.5, partial(np.random.default_rng, seed)) for seed in (1, 2)]
    public = masks(None)
    assert (masks(None) == public).all()
    assert (masks(secret[0]) == masks(secret[0])).all()
    assert not any((masks(noise) == public).all() for noise in secret)
    assert not (masks(secret[0]) == masks(secret[1])).all()


def test_nothing_that_reaches_all_records_is_taken_beside_noise_on_records() -> None:
    client = Asked(configured("fedavg", unit="record"))
    sums = {"sums": np.zeros((2, 3, 4), np.float32)}
    with pytest.raises(RefusedError, match="reach every record"):
        client.session.train(TrainRequest(1, client.enrolled.enrolment, client.model, cost=0.1, statics=sums))
    assert client.spent == 0


def test_the_owners_limit_is_one_for_all_units(tmp_path: Path) -> None:
    data = tmp_path / "homes.csv"
    data.write_text("home,rule\n")

    def opened(unit: Unit, account: Zcdp | Rdp) -> Ledger:
        return open_ledger(str(data), tmp_path / "state", "0" * 64, unit, account, 4.0, 1e-5, alone=True)

    whole, each = opened("client", Zcdp()), opened("record", Rdp(8))
    whole.release(Slot("run", 1), whole.terms(Gaussian(0.01, 1.0)), lambda: b"noise")
    with pytest.raises(RefusedError, match="already covers releases of unit client"):
        each.release(Slot("run", 2), each.terms(Gaussian(0.01, 1.0)), lambda: b"noise")
    assert each.spent() == 0


def test_a_row_more_brings_no_new_budget_where_ledgers_have_a_folder_of_their_own(tmp_path: Path) -> None:
    data = tmp_path / "homes.csv"
    for number in (1, 2):
        data.write_text("home,rule\n" * number)
        one = open_ledger(
            str(data), tmp_path / "state", str(number) * 64, "client", Zcdp(), 4.0, 1e-5, folder=tmp_path / "ledgers"
        )
        one.release(Slot("run", number), one.terms(Gaussian(0.01, 1.0)), lambda: b"noise")
        assert one.spent() == pytest.approx(0.01 * number)
        one.close()


def test_clients_with_parts_of_one_data_set_do_not_send_each_others_answers() -> None:
    shared = ledger(epsilon=1e6)
    parts = [Asked(configured("fedavg"), seed=k, part=f"{k}/2", ledger=shared) for k in range(2)]
    total = gdp_of(10, 1e-5)
    first, second = (one.train(1, 0.9 * total) for one in parts)
    assert any((first.update[n] != second.update[n]).any() for n in first.update)
    assert shared.spent() == pytest.approx(1.8 * total), "what both cost counts against the owner's limit"


def test_a_round_is_limited_as_a_whole_and_at_the_owners_delta() -> None:
    a_round = gdp_of(1.0, 1e-5)
    client = Asked(configured("fedavg", epsilon=100.0), Policy(max_epsilon_per_round=1.0))
    client.train(1, 0.6 * a_round, phase="local")
    with pytest.raises(RefusedError, match="policy's limit for a round"):
        client.train(1, 0.6 * a_round, phase="cluster")
    client.train(1, 0.3 * a_round, phase="cluster")
    client.train(2, 0.6 * a_round, phase="local")
    generous = Asked(configured("fedavg", epsilon=100.0, delta=0.999), Policy(max_epsilon_per_round=1.0))
    assert epsilon_of_gdp(0.9, 0.999) < 1 < epsilon_of_gdp(0.9, 1e-5)
    with pytest.raises(RefusedError, match=r"asked for ε 6\.17 in one round"):
        generous.train(1, 0.9)


def test_a_run_s_budget_is_checked_where_it_is_charged() -> None:
    """Two processes may both have found it affordable."""
    one = ledger()
    limits = Limits(run=0.15)
    one.release(Slot("run", 1), one.terms(Gaussian(0.1, 1.0)), lambda: b"noise", limits)
    with pytest.raises(RefusedError, match="the run's remaining budget"):
        one.release(Slot("run", 2), one.terms(Gaussian(0.1, 1.0)), lambda: b"noise", limits)
    one.release(Slot("another", 1), one.terms(Gaussian(0.1, 1.0)), lambda: b"noise", limits)
    assert isinstance(Releaser(Policy(), lambda unit, account: one).budget.ledger(configured().privacy), Ledger)
