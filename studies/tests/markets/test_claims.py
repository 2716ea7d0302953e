"""Claims of the markets page follow from its numbers."""

from studies.harness.row import Row
from studies.markets.claims import of_default, of_pairs, values_of
from studies.markets.experiments import MARKETS
from tests.support.study_rows import by_client


def row(key: str, mrr: float) -> Row:
    return by_client(key, {market: {"mrr20": mrr, "ndcg20": mrr} for market in MARKETS})


def test_the_mean_is_of_the_small_markets() -> None:
    seeds = [{name: {"mrr20": float(name == "fr")} for name in MARKETS}, {name: {"mrr20": 1.0} for name in MARKETS}]
    assert values_of(by_client("a", *seeds), "mrr20", "mean") == [0.2, 1.0]
    assert values_of(by_client("a", *seeds), "mrr20", "ca") == [0.0, 1.0]


def test_a_gain_within_the_noise_is_no_gain() -> None:
    rows = {key: row(key, mrr) for key, mrr in (("walk", 0.7), ("local", 0.5), ("fedavg", 0.505), ("pfgnn", 0.56))}
    sentences = list(of_pairs(rows))
    assert sentences[0].startswith("fedavg against a local GNN, MRR@20 in points, 1 seed: fr +0.5")
    assert "mean +0.5: **no gain**; 19.5 below wRA." in sentences[0]
    assert "mean +6.0: gain;" in sentences[1]
    expected = "pfgnn at least fedavg, MRR@20, mean of the small markets: +5.5, holds; nowhere below it"
    assert sentences[2].startswith(expected)
    assert "pfgnn: MRR@20 of the exploration's best local SGC is **not reached** in mx (56.0 of 62)" in sentences[-1]


def test_the_default_is_compared_with_the_better_baseline_in_every_protocol() -> None:
    rows = {key: row(key, mrr) for key, mrr in (("degree", 0.4), ("walk", 0.2), ("ridge", 0.395))}
    [level] = of_default("Held-out users: pairs", rows)
    assert level == (
        "Held-out users: the default is below no baseline in any small market (MRR@20, by more than 1 point)."
    )
    [sentence] = of_default("Held-out users: pairs", {**rows, "ridge": row("ridge", 0.38)})
    assert sentence.startswith(
        "Held-out users: the default is **below** a baseline in fr (38.0, degree 40.0), de (38.0,"
    )
    assert list(of_default("Held-out users", {})) == []
