import pytest

from benchmarks.rules.claims import Duel, Target, check, duel
from benchmarks.rules.study import Row


def _row(key: str, **seeds: float) -> Row:
    return Row(key, key, seeds={int(seed[1:]): {"loss": loss} for seed, loss in seeds.items()})


def test_a_duel_is_fought_on_the_seeds_both_have() -> None:
    fought = duel(_row("a", s0=0.1, s1=0.5, s2=0.0), _row("b", s0=0.3, s1=0.4), "loss")
    assert fought.differences == pytest.approx((-0.2, 0.1))
    assert fought.won == 1


def test_higher_wins_where_higher_is_better() -> None:
    assert Duel("hr20", (0.1, -0.2, 0.0)).won == 1
    assert Duel("hr20", (0.1, 0.3)).text == "+0.200 ± 0.141, 2/2"


def test_targets_bind_on_their_side() -> None:
    assert Target("a", "loss", 0.2).holds(0.2)
    assert not Target("a", "auc", 0.98).holds(0.97)
    assert Target("a", "auc", 0.98).text == "AUC ≥ 0.98"


def test_a_target_missed_is_said() -> None:
    row = Row("default-fedrule", "ours", seeds={0: {"loss": 0.05, "mr0": 2.0, "hr20": 0.5}})
    assert check({row.key: row}) == [
        ("ours", "loss ≤ 0.08", "0.050", "holds"),
        ("ours", "MR ≤ 1", "2.000", "**does not hold**"),
        ("ours", "HR@20 ≥ 0.4", "0.500", "holds"),
    ]
