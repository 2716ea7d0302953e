"""The page says of every row what it is made of."""

from benchmarks.ratings.authors import Mechanism
from benchmarks.ratings.lines import OWN
from benchmarks.ratings.sets import SETTINGS
from benchmarks.ratings.study import Row, Study
from benchmarks.ratings.table import page

METRICS = {"mae": 0.2, "f1": 0.8}


def row(key: str, *errors: float, rounds: int = 100) -> Row:
    seeds = {seed: {"rmse": error, **METRICS} for seed, error in enumerate(errors)}
    return Row(key, f"the {key}", seeds, rounds=dict.fromkeys(seeds, rounds))


def study(authors: dict[tuple[str, Mechanism], Row]) -> Study:
    lines = {share: [row(OWN, 0.21, 0.22, 0.23)] for share in (0.0, 0.1)}
    return Study(SETTINGS[0], 9, 9, 99, 1, (85.0, 590.0), lines, {}, ["a"], ["b (1 of 3)"], [], authors)


def test_rows_of_the_authors_scheme_say_their_splits_and_rounds_and_are_paired_with_their_uniform() -> None:
    rows: dict[tuple[str, Mechanism], Row] = {
        ("uniform", "gaussian"): row("even", 0.3, 0.31),
        ("uniform", "laplace"): row("even by Laplace", 0.5),
        ("adap", "gaussian"): row("adaptive", 0.29, rounds=74),
    }
    lines = page([study(rows)], "made").splitlines()
    told = {line.split(" | ")[0]: line.split(" | ")[1:] for line in lines if line.startswith("| the ")}
    assert told["| the even"][:3] == ["Gaussian, true ε = 588, arriving 465", "2", "100"]
    assert told["| the even"][-1] == " |"
    assert told["| the even by Laplace"][0] == "Laplace, true ε = 890, arriving 680"
    assert told["| the adaptive"][1:3] == ["1", "74"]
    assert told["| the adaptive"][-1] == "−.0100, 1/1 |"
    assert "**Fewer splits than planned so far:** b (1 of 3)." in lines


def test_every_table_is_a_rectangle() -> None:
    tables = page([study({("uniform", "gaussian"): row("even", 0.3)})], "made").split("\n\n")
    for table in [part.splitlines() for part in tables if part.startswith("| ")]:
        assert len({line.count(" | ") for line in table}) == 1
