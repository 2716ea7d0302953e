"""FedSTL under properties of templates: what is sent, pooled, refused and stated."""

from pathlib import Path

import numpy as np
import pytest

from client.state import MemoryStore
from common.config.run import RunConfig
from common.errors import ConfigError
from common.options import Scalar
from common.privacy.claims import PROPERTIES
from common.tasks.traffic.options import MINED
from common.tasks.traffic.properties import STRUCTURE, pool_parameters
from common.wire.messages import CLUSTER, AssignReply, TrainRequest
from deploy.tasks.traffic.words import describe_clusters
from server.record.folder import RunDirectory
from server.record.privacy_statement import statement
from server.run import run
from tests.support.build import task_model
from tests.support.sensors import MEASURES, Listening, heard, road_config, road_grid


def template_config(kind: str, method: str = "fedstl", **options: Scalar) -> RunConfig:
    chosen: dict[str, Scalar] = {"model": "paper", "tasks__traffic__property": kind, "tasks__traffic__window_width": 1}
    extra: dict[str, Scalar] = {"spread": 0.5, "clusters": 2} if method == "fedstl" else {}
    return road_config(method, **{**chosen, **extra, **options})


def federation(config: RunConfig, folder: Path) -> Listening:
    grid = road_grid([MemoryStore() for _ in range(3)], Listening)
    run(grid, config, folder)
    return grid


@pytest.mark.parametrize("kind", ["existence", "until", "implication", "eventualities", "mined"])
def test_clusters_train_under_the_pooled_parameters_of_their_members(kind: str, tmp_path: Path) -> None:
    grid = federation(template_config(kind), tmp_path)
    sent = {name: reply.property for name, reply in heard(grid, AssignReply) if reply.property}
    assert sent.keys() == {"client-0", "client-1", "client-2"}
    assert all(set(STRUCTURE) < arrays.keys() for arrays in sent.values())
    shared = [(name, request.shared) for name, request in heard(grid, TrainRequest) if request.phase == CLUSTER]
    assert shared
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    clusters = {name: int(j) for name, j in checkpoint.groups["cluster"].items()}
    for name, phi in shared[-3:]:
        expected = pool_parameters([sent[member] for member, j in clusters.items() if j == clusters[name]])
        assert phi.keys() == expected.keys()
        for key, values in expected.items():
            np.testing.assert_array_equal(phi[key], values)
    words = describe_clusters(checkpoint)
    assert words.keys() == {str(j) for j in clusters.values()}
    assert all(text.startswith("template ") for text in words.values())


def test_other_methods_send_no_property(tmp_path: Path) -> None:
    grid = federation(template_config("mined", "fedavg"), tmp_path)
    assert not heard(grid, AssignReply)
    assert all(request.shared == {} for _, request in heard(grid, TrainRequest))


def test_noise_covers_parameters_and_the_structure_is_not_sent(tmp_path: Path) -> None:
    grid = federation(template_config("existence", privacy__unit="client", privacy__epsilon=50.0), tmp_path)
    replies = [reply.property for _, reply in heard(grid, AssignReply)]
    assert replies
    for arrays in replies:
        assert arrays.keys() == {"lower", "upper"}
        assert (arrays["lower"] <= arrays["upper"]).all()


@pytest.mark.parametrize("kind", ["mined", "implication"])
def test_a_form_that_depends_on_the_data_has_no_noise(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"property={kind} cannot have noise"):
        task_model(template_config(kind, privacy__unit="client"), MEASURES)
    task_model(template_config(kind, "fedavg", privacy__unit="client"), MEASURES)


def test_the_statement_names_parameters_and_mined_templates() -> None:
    assert {PROPERTIES, MINED} <= set(statement(template_config("mined"), {}, 0).uncovered)
    assert MINED not in statement(template_config("existence"), {}, 0).uncovered
