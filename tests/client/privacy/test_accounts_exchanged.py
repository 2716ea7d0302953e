"""What a ledger counts in is fixed by the first release: a run that released nothing locks no other out."""

import pytest

from client.owner.policy import Policy
from client.privacy.budget import settings_for
from client.privacy.ledger.database import Slot
from common.config.parse import to_json
from common.errors import RefusedError
from common.privacy.accounts import Account, Gdp, Pure, Rdp, Zcdp, fixed_order, gdp_of
from common.privacy.mechanisms import Gaussian, build_account
from common.privacy.options import PrivacyOptions
from common.wire.messages import EnrolReply, EnrolRequest, TrainRequest
from tests.support.asked import Asked, configured
from tests.support.toys import CATALOGUE

RHO = gdp_of(10, 1e-5)
NOISE: dict[str, dict[str, str | float]] = {
    "pure": {"mechanism": "privunit"},
    "gdp": {"mechanism": "gaussian"},
    "rdp-2": {"unit": "record", "epsilon": 1000.0, "accounting": "filter"},
    "rdp-4": {"unit": "record", "epsilon": 10.0, "accounting": "filter"},
    "prv-1e-05": {"unit": "record"},
}


def enrolled(client: Asked, run: str, **noise: str | float) -> EnrolReply:
    return client.session.enrol(EnrolRequest(run, to_json(configured(**noise)), CATALOGUE.to_json()))


@pytest.mark.parametrize(
    ("first", "then"), [("pure", "gdp"), ("gdp", "pure"), ("rdp-2", "rdp-4"), ("prv-1e-05", "rdp-4")]
)
def test_a_run_that_released_nothing_locks_no_other_out(first: str, then: str) -> None:
    client = Asked(configured(**NOISE[first]))
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.train(1, 1e9)
    reply, options = enrolled(client, "other", **NOISE[then]), configured(**NOISE[then]).privacy
    account = build_account(options)
    assert (account.name, reply.budget) == (then, account.total(options.epsilon, options.delta))
    client.session.train(TrainRequest(1, reply.enrolment, client.model, cost=reply.budget))
    ledger = client.releaser.budget.ledger(options)
    assert (ledger.account, ledger.spent()) == (account, pytest.approx(reply.budget))
    with pytest.raises(
        RefusedError, match=rf"uses the {then} account since its first release, the run needs {first}; set privacy"
    ):
        enrolled(client, "third", **NOISE[first])
    assert ledger.account == account


def test_who_enrolled_first_may_still_be_the_first_to_release() -> None:
    client = Asked(configured())
    enrolled(client, "other", mechanism="laplace")
    client.train(1, RHO / 2)
    assert client.spent == pytest.approx(RHO / 2)
    with pytest.raises(RefusedError, match=r"set privacy\.mechanism=gaussian"):
        enrolled(client, "other", mechanism="laplace")


@pytest.mark.parametrize(
    ("account", "advice"),
    [(Pure(), "privacy.mechanism=laplace or privacy.mechanism=privunit"), (Gdp(), "privacy.mechanism=gaussian")],
)
def test_a_refusal_names_mechanisms_that_count_so(account: Account, advice: str) -> None:
    assert settings_for(account, 1e-5) == advice
    for mechanism in advice.replace("privacy.mechanism=", "").split(" or "):
        assert build_account(PrivacyOptions.model_validate({"unit": "client", "mechanism": mechanism})) == account


def test_an_older_ledger_in_zcdp_serves_runs_in_gdp_within_its_smaller_total() -> None:
    client = Asked(configured(), Policy(max_epsilon=10.0))
    ledger = client.releaser.budget.ledger(client.config.privacy)
    ledger.use_account(Zcdp())
    total = Zcdp().total(10, 1e-5)
    slot = Slot("earlier", 1)
    ledger.release(slot, ledger.terms(Gaussian(total / 4, 1.0)), lambda: b"")
    reply = enrolled(client, "later")
    assert (ledger.account, reply.budget) == (Zcdp(), pytest.approx(total * 3 / 4))
    client.session.train(TrainRequest(1, reply.enrolment, client.model, cost=reply.budget))
    assert ledger.spent() == pytest.approx(total)
    assert ledger.spent() < RHO
    with pytest.raises(RefusedError, match="exhausted"):
        enrolled(client, "none left")
    assert settings_for(Zcdp(), 1e-5) == "privacy.mechanism=gaussian"


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("order", [2, 3, 4, 17, 100, 999])
def test_a_refusal_names_an_epsilon_that_counts_in_that_order(order: int, delta: float) -> None:
    advice = settings_for(Rdp(order), delta)
    assert fixed_order(float(advice.split()[0].partition("=")[2]), delta) == order
    assert advice.endswith(f"privacy.delta={delta:g}")


def test_a_run_that_does_what_the_refusal_says_is_accepted() -> None:
    client = Asked(configured(unit="record", epsilon=1000.0, accounting="filter"))
    client.train(1, client.enrolled.budget / 100)
    with pytest.raises(RefusedError, match=r"set privacy\.epsilon=.* and privacy\.accounting=filter") as refusal:
        enrolled(client, "other", unit="record", epsilon=10.0)
    epsilon = float(str(refusal.value).partition("set privacy.epsilon=")[2].split()[0])
    assert enrolled(client, "other", unit="record", epsilon=epsilon, accounting="filter").budget > 0
