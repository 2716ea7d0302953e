"""Rows of statistics that few clients have: their number is summed with them, and the server leaves them out."""

from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.tasks.registry import build_learner
from client.tasks.rules.data.homes import Homes
from client.training.alone import measure_alone
from common.arrays import Floats, Ints
from common.config.parse import configure_alone, parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.options import Scalar
from common.tasks.closed_form import count_clients, drop_rare, widen
from common.tasks.rules import ease
from common.wire.sparse_rows import expand
from deploy.simulation.grid import simulate
from deploy.simulation.preview import lines_of, preview_messages
from tests.contracts.test_ridge import ALLOWED, gram, solution
from tests.support.hubs import of_hub
from tests.support.sum_runs import POLICY, SumFederation, summed
from tests.support.toys import CATALOGUE, configured, toy_dataset

LEAST = 2


def of_toys(folder: Path, least: int) -> RunConfig:
    """Return the configuration of a run in closed form on toys, whose vocabulary is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    return configured("ridge", catalogue=str(folder / "catalogue.json"), min_count=least)


def homes_of(config: RunConfig, number: int) -> list[Ints]:
    """Return the ids of the triples of each home's training rules."""
    started, found = ease.sizes(CATALOGUE, False), []
    for home in toy_dataset(number).units:
        rows = build_learner(config, Homes((home,), CATALOGUE)).statistics(started)
        found.append(np.flatnonzero(expand(rows, ease.template(started))[ease.USED]))
    return found


def expected_gram(homes: list[Ints], least: int) -> tuple[Ints, Floats]:
    """Return the triples of at least so many homes, and G of the pairs of as many."""
    triples, numbers = np.unique(np.concatenate(homes), return_counts=True)
    triples = triples[numbers >= least]
    rows = np.array([np.isin(triples, home) for home in homes], float)
    lengths = np.maximum(rows.sum(1, keepdims=True), 1)
    return triples, np.where(rows.T @ rows >= least, (rows / lengths).T @ rows, 0)


def test_a_pair_that_one_home_alone_has_is_not_in_the_solution(tmp_path: Path) -> None:
    found = {}
    for least in (0, LEAST):
        config = of_toys(tmp_path / str(least), least)
        assert simulate(config, toy_dataset(12), tmp_path / str(least)).status == "completed"
        found[least] = solution(tmp_path / str(least))
        triples, pairs = expected_gram(homes_of(config, 12), least)
        np.testing.assert_array_equal(found[least][ease.TRIPLES], triples)
        positive = np.linalg.eigvalsh(pairs) > ease.LEAST_EIGENVALUE
        values, vectors = np.linalg.eigh(pairs)
        solved = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
        np.testing.assert_allclose(gram(found[least]), solved, atol=1e-5)
    rare = expected_gram(homes_of(config, 12), 0)[1] > 0
    assert len(found[LEAST][ease.TRIPLES]) <= len(found[0][ease.TRIPLES])
    assert rare.sum() > (expected_gram(homes_of(config, 12), LEAST)[1] > 0).sum(), "there are such pairs"


def test_masks_and_hubs_leave_out_the_same_rows(tmp_path: Path) -> None:
    found = {}
    for trust in ("helpers", "local"):
        federation = SumFederation(tmp_path / trust, policy=POLICY.model_copy(update=ALLOWED))
        federation.run(summed("ridge", trust, min_count=LEAST))
        found[trust] = solution(tmp_path / trust)
    for answer in ("sums", "replies"):
        found[answer] = solution(
            of_hub(tmp_path / answer, "ridge", ALLOWED, federation__answer=answer, min_count=LEAST)
        )
    for first, second in (("helpers", "local"), ("sums", "replies")):
        np.testing.assert_array_equal(found[first][ease.TRIPLES], found[second][ease.TRIPLES])
        np.testing.assert_allclose(gram(found[first]), gram(found[second]), atol=1e-4)
    assert found["helpers"][ease.SIZES][3] < ease.MOST_TRIPLES, "a sum has room for fewer pairs"


def test_a_client_alone_leaves_out_nothing(tmp_path: Path) -> None:
    measured = {}
    for least in (0, 5):
        config = configure_alone(of_toys(tmp_path, least), 3)
        [(_, measured[least])] = measure_alone(
            config, CATALOGUE, {"client": build_learner(config, toy_dataset(3))}, "test"
        ).items()
    assert measured[0] == measured[5]
    assert measured[0].metrics


def test_the_number_of_clients_is_summed_with_their_rows() -> None:
    template = {"table": np.zeros((4, 2), np.float32), "vector": np.zeros(3, np.float32)}
    first = {"table": np.array([[1, 2], [0, 0], [0, 3], [0, 0]], np.float32), "vector": np.ones(3, np.float32)}
    rows = {"table@rows": np.array([0, 3], np.int32), "table@values": np.ones((2, 2), np.float32)}
    sent = [count_clients(first), expand(count_clients({**rows, "vector": np.ones(3, np.float32)}), widen(template))]
    sums = {name: np.sum([each[name] for each in sent], axis=0, dtype=np.float64) for name in template}
    found = drop_rare(sums, 2)
    np.testing.assert_array_equal(found["table"], [[2, 3], [0, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(found["vector"], [2, 2, 2])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy.unit": "client"}, "does not apply to runs with noise, which covers rare rows"),
        ({"federation.robust": "median", "federation.min-replies": 3}, "set federation.robust=none"),
    ],
)
def test_what_hides_the_number_of_clients_is_refused(options: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse({"method": "ridge", "task": "rules", "algorithm.ridge.min-count": 3, **options})


def test_the_statement_says_what_is_left_out(tmp_path: Path) -> None:
    config = of_toys(tmp_path, 3)
    result = simulate(config, toy_dataset(8), tmp_path)
    assert [channel for channel in result.privacy.uncovered if "3 or more clients" in channel]
    assert not [channel for channel in result.privacy.uncovered if "one client alone" in channel]
    of_one = {"federation": config.federation.model_copy(update={"min_clients": 1})}
    preview = preview_messages(config.model_copy(update=of_one), toy_dataset(1), Policy(allow_counts="clear"))
    assert [line for line in lines_of(preview, []) if "not protected: sums of statistics of 3 or more clients" in line]
