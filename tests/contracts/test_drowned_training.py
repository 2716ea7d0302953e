"""Server and client refuse training that noise would drown, before anything is charged."""

from pathlib import Path

import pytest

from common.errors import ConfigError, RefusedError
from common.wire.messages import TrainRequest
from server.record.folder import RunDirectory
from tests.support.asked import Asked
from tests.support.asked import configured as asked
from tests.support.owners import noisy, owners, total_of

pytestmark = pytest.mark.usefixtures("refused_noise")


def test_a_run_is_refused_before_any_client_is_charged(tmp_path: Path) -> None:
    config, clients = noisy(tmp_path, "fedavg"), owners(3)
    with pytest.raises(ConfigError, match="noise would drown this training: the mean update of 3 homes") as refusal:
        clients.run(config, tmp_path)
    assert set(clients.spent(config).values()) == {0.0}
    result = RunDirectory(tmp_path, "toy").result()
    assert result is not None
    assert (result.status, result.rounds_done) == ("failed", 0)
    assert str(refusal.value) in result.reason


def test_a_run_that_accepts_the_noise_trains(tmp_path: Path) -> None:
    config, clients = noisy(tmp_path, "fedavg", rounds=2, **{"privacy.accept-noise": True}), owners(3)
    assert clients.run(config, tmp_path).rounds_done == 2
    assert min(clients.spent(config).values()) > 0


def test_a_run_in_closed_form_is_not_refused(tmp_path: Path) -> None:
    assert owners(3).run(noisy(tmp_path, "ridge"), tmp_path).rounds_done == 1


def test_a_client_refuses_what_its_server_does_not() -> None:
    client = Asked(asked("fedavg"))
    request = TrainRequest(1, client.enrolled.enrolment, client.model, cost=0.01, clients=3)
    with pytest.raises(RefusedError, match="the mean update of 3 homes"):
        client.session.train(request)
    assert client.spent == 0


def test_a_client_whose_run_accepts_noise_answers() -> None:
    client = Asked(asked("fedavg", accept_noise=True))
    client.session.train(TrainRequest(1, client.enrolled.enrolment, client.model, cost=0.01, clients=3))
    assert client.spent > 0


def test_after_sums_a_drowned_training_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, clients = noisy(tmp_path, "fedavg", first="ridge", rounds=3), owners(3)
    result = clients.run(config, tmp_path)
    assert (result.method, result.status, result.rounds_done) == ("ridge", "completed", 1)
    assert "the run takes the sums of ridge alone, with the whole budget" in caplog.text
    assert [*clients.spent(config).values()] == [pytest.approx(total_of(config), rel=0.01)] * 3
