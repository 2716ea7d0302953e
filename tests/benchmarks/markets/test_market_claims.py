"""What the page says of its targets follows from its figures."""

from benchmarks.markets.sets import MARKETS, SMALL
from benchmarks.markets.table import Row

from benchmarks.markets.claims import of_cold, of_default, of_joiners, of_pairs


def row(key: str, mrr: float) -> Row:
    return Row(key, key, {0: {market: {"mrr20": mrr, "ndcg20": mrr} for market in MARKETS}})


def joined(scorer: float, degree: float) -> dict[str, float]:
    return {f"{key}_{m}": value for key, value in (("scorer", scorer), ("degree", degree)) for m in ("mrr20", "ndcg20")}


def test_a_method_that_gains_less_than_the_noise_gains_nothing() -> None:
    rows = {key: row(key, mrr) for key, mrr in (("walk", 0.7), ("local", 0.5), ("fedavg", 0.505), ("pfgnn", 0.56))}
    told = list(of_pairs(rows))
    assert "- fedavg against a local GNN, MRR: fr +0.5" in told[0]
    assert "mean +0.5: **no gain**. 19.5 below wRA." in told[0]
    assert "mean +6.0: gain." in told[1]
    assert told[2].startswith("- pfgnn at least fedavg, mean of the small markets: +5.5, holds; nowhere below it")
    assert told[-1] == "- pfgnn: the exploration's best local SGC is **missed** in mx (56.0 of 62), in (56.0 of 63)."


def test_new_items_have_to_gain_in_both_measures_in_every_market() -> None:
    good = {name: [joined(0.5, 0.4)] for name in SMALL}
    assert list(of_cold("clear", good)) == [
        "- New items, counts clear: +3.5 MRR and +4.5 NDCG over degree in all 5 markets: holds."
    ]
    told = list(of_cold("noised", {**good, "fr": [joined(0.44, 0.4)], "jp": [joined(0.32, 0.2)]}))
    assert told[0].endswith("**does not hold** in fr (+4.0 / +4.0).")
    assert told[1] == "- jp's NDCG under noise at least 33: 32.0, **does not hold**."


def test_a_late_joiner_is_compared_with_the_better_line() -> None:
    seed = {"0.1": {"scorer_mrr20": 0.2, "degree_mrr20": 0.3, "walk_mrr20": 0.1}}
    other = {"0.1": {"scorer_mrr20": 0.3, "degree_mrr20": 0.2, "walk_mrr20": 0.305}}
    [told] = of_joiners({"fr": [seed], "de": [other]})
    assert told.endswith("the scorer **loses** to a line in fr (20.0, degree 30.0) (MRR, beyond 1 point).")


def test_the_default_is_compared_with_the_better_line_in_every_protocol() -> None:
    rows = {key: row(key, mrr) for key, mrr in (("degree", 0.4), ("walk", 0.2), ("default", 0.395))}
    [level] = of_default("Held-out users: pairs", rows)
    assert level == "- Held-out users: the default loses to no line in any small market (MRR, beyond 1 point)."
    [told] = of_default("Held-out users: pairs", {**rows, "default": row("default", 0.38)})
    assert told.startswith("- Held-out users: the default **loses** to a line in fr (38.0, degree 40.0), de (38.0,")
    assert list(of_default("Held-out users", {})) == []
