"""Configuration of a run from a command's options: defaults of a task, and noise."""

import pytest

from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import TASKS
from deploy.cli.options import RunRequest
from deploy.commands.tasks import describe
from deploy.federation.request import resolve

pytestmark = pytest.mark.usefixtures("here")


def config_of(
    method: str = "fedavg", sets: list[str] | None = None, epsilon: float | None = None, delta: float | None = None
) -> RunConfig:
    return resolve(RunRequest(method, "markets", sets=sets, epsilon=epsilon, delta=delta), {})


def test_the_network_of_markets_has_its_options_where_its_method_is_named() -> None:
    config = config_of()
    assert (config.method, config.model, config.rounds) == ("fedavg", "default", 20)


def test_another_method_has_none_of_the_network_s_options() -> None:
    assert config_of("pfgnn").rounds == RunConfig.model_fields["rounds"].default


@pytest.mark.parametrize(
    ("sets", "delta", "name"),
    [
        (None, 1e-6, "--delta"),
        (["privacy.epsilon=2"], None, "--set privacy.epsilon"),
        (["privacy.clip=2"], None, "clip"),
    ],
)
def test_options_of_noise_need_noise(sets: list[str] | None, delta: float | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs --epsilon; this run adds no noise"):
        config_of("fedavg", sets, delta=delta)
    config = config_of("fedavg", [*(sets or []), "privacy.unit=client"], delta=delta)
    assert config.privacy.unit == "client"
    assert config_of("fedavg", epsilon=2.0, delta=delta).privacy.unit == "client"
    assert config_of("fedavg", ["privacy.unit=none"]).privacy.unit == "none"


def test_a_task_without_separate_records_is_refused_for_any_default_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"needs batches of separate records.*; set privacy\.unit=client") as caught:
        resolve(RunRequest(task="ratings", sets=["privacy.unit=record"], epsilon=3.0), {})
    assert "mechanism" not in str(caught.value)


def test_helpers_add_gaussian_noise_whatever_the_task_adds_at_clients() -> None:
    local, summed = (resolve(RunRequest(task="ratings", epsilon=1.0, helpers=n), {}).privacy for n in (None, 2))
    assert (local.mechanism, local.trust) == ("privunit", "auto")
    assert (summed.mechanism, summed.trust) == ("gaussian", "helpers")


@pytest.mark.parametrize("task", TASKS)
def test_fedloom_tasks_names_the_defaults_of_each(task: str) -> None:
    config, defaults = resolve(RunRequest(task=task), {}), describe(task)["defaults"]
    assert config.method == defaults["method"]
    assert config.capabilities.closed_form or config.rounds == defaults.get("rounds", 30)


def test_helpers_of_a_run_on_the_command_line() -> None:
    config = resolve(RunRequest(task="rules", helpers=3), {})
    assert (config.privacy.trust, config.secure_sums.helpers) == ("helpers", 3)
    assert resolve(RunRequest(task="rules", helpers=0), {}).privacy.trust == "local"
    assert resolve(RunRequest(task="rules", sets=["privacy.trust=helpers"]), {}).privacy.trust == "helpers"
    with pytest.raises(ConfigError, match="helpers"):
        resolve(RunRequest(task="rules", helpers=1), {})
