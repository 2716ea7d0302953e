"""Rows, claims and page of Online Retail."""

import pytest

from common.config.parse import parse
from common.tasks.markets.task import TASK
from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import About, Row, RowKey
from studies.markets.experiments import under
from studies.markets.retail import EXPERIMENTS, GRIDS, MARKETS, PROTOCOLS, RATES, RETAIL, WEIGHTS_S, WEIGHTS_W
from studies.markets.retail_claims import of_default, of_networks, of_ranking, values_of
from studies.markets.retail_page import sections
from tests.support.study_rows import by_client


def row(key: str, *seeds: float, **others: float) -> Row:
    """Return a row with one value a seed in all markets; `others` are further metrics."""
    return by_client(key, *({name: {"mrr20": mrr, "ndcg20": mrr, **others} for name in MARKETS} for mrr in seeds))


@pytest.mark.parametrize("one", [*EXPERIMENTS, *GRIDS], ids=lambda one: f"{one.protocol}/{one.key}")
def test_every_row_is_a_configuration_with_texts_unless_it_says_so(one: Experiment) -> None:
    for protocol in PROTOCOLS:
        config = parse({**under(protocol, one).settings, **one.grid[-1], "seed": 1})
        assert config.options_of(TASK).protocol == protocol
        assert config.options_of(TASK).features == "hashing"


def test_the_networks_have_equal_grids() -> None:
    assert {len(one.grid) for one in EXPERIMENTS if one.settings["model"] == "paper"} == {len(RATES)}
    assert [len(one.grid) for one in GRIDS] == [len(WEIGHTS_W), len(WEIGHTS_W) + len(WEIGHTS_S) - 1]


def test_the_mean_is_of_all_markets_in_percent() -> None:
    one = by_client("a", {name: {"mrr20": float(name == "uk")} for name in MARKETS})
    assert values_of(one, "mrr20", "mean") == {0: pytest.approx(100 / 11)}
    assert values_of(one, "mrr20", "uk") == {0: 100.0}


def test_the_default_is_held_against_the_best_baseline_of_each_market() -> None:
    rows = {"degree": row("degree", 0.4, 0.4), "text": row("text", 0.3, 0.3), "ridge": row("ridge", 0.45, 0.44)}
    rows["degree"].trials[0].clients["it"]["mrr20"] = 0.6
    found = list(of_default(rows))
    assert found[0].endswith("MRR@20: **does not hold** in it (−5.5 ± 13.4, 1/2, degree).")
    assert found[1].startswith("Default above it in the mean, MRR@20: +3.6")
    assert found[2].endswith("NDCG@20: holds.")
    assert list(of_default({"ridge": rows["ridge"]})) == []


def test_networks_are_compared_seed_by_seed() -> None:
    rows = {"local": row("local", 0.2, 0.3), "fedavg": row("fedavg", 0.3, 0.35), "pfgnn": row("pfgnn", 0.3)}
    found = list(of_networks(rows))
    assert found[0] == "fedavg above local, MRR@20: +7.5 ± 3.5, 2/2, holds; in 11 of 11 markets."
    assert "pfgnn above fedavg, MRR@20: +0.0, 0/1, **does not hold**; in 0 of 11 markets." in found


def test_both_rankings_of_one_training_are_compared() -> None:
    plus = row("pfgnn-plus", 0.3, unpooled_mrr20=0.2, unpooled_ndcg20=0.4)
    [found] = of_ranking({"pfgnn-plus": plus, "pfgnn-centroid": row("pfgnn-centroid", 0.3)})
    assert found == "pfgnn-plus: Z against Z̃ in the ranking: MRR@20 +10.0, 1/1; NDCG@20 −10.0, 0/1."


def test_the_page_shows_rows_and_grid() -> None:
    assert list(sections(Results())) == []
    key, grid = RowKey(RETAIL, "cold", "degree"), RowKey(RETAIL, "lambda", "pfgnn")
    about = About("PF-GNN", grid={"lambda_w 1, lambda_s 0.01": {"mrr20": 0.5}, "lambda_w 10, lambda_s 0.01": {}})
    results = Results(rows={key: Row(key, About("degree"), row("degree", 0.4).trials), grid: Row(grid, about)})
    text = "\n".join(sections(results))
    assert "| degree | 1 | 40.0 / 40.0 |" in text
    assert "| PF-GNN (Eq 13) | lambda_w 1, lambda_s 0.01 | 50.0 |" in text
    assert "| PF-GNN (Eq 13) | lambda_w 10, lambda_s 0.01 | diverged |" in text
