"""Rows of the authors' scheme state their true cost, splits and rounds, and are paired with their even split."""

from studies.harness.results import Results
from studies.harness.row import NO_SEED, About, Row, RowKey, Trial
from studies.ratings.experiments import AUTHORS, OWN
from studies.ratings.page import page

SIZES = {"clients": 9, "items": 9, "ratings": 99, "empty": 1, "mean_rows": 85.0, "max_rows": 590.0}


def results(**authors: tuple[float, ...]) -> Results:
    rows = {
        RowKey("ml", "all", "data"): Row(RowKey("ml", "all", "data"), About("data set"), {NO_SEED: Trial(SIZES)}),
    }
    for protocol in ("all", "rewards"):
        key = RowKey("ml", protocol, OWN)
        rows[key] = Row(key, About("own"), {seed: _trial(0.21 + seed / 100) for seed in range(3)})
    for name, errors in authors.items():
        key = RowKey("ml", "authors", name.replace("_", "-"))
        rounds = 74 if key.row.startswith("adap") else 100
        rows[key] = Row(key, About(f"the {key.row}"), {s: _trial(error, rounds) for s, error in enumerate(errors)})
    return Results({}, rows)


def _trial(rmse: float, rounds: int = 100) -> Trial:
    return Trial({"rmse": rmse, "mae": 0.2, "f1": 0.8, "rounds": rounds})


def test_rows_of_the_authors_scheme_state_cost_splits_and_rounds() -> None:
    made = results(uniform_gaussian=(0.3, 0.31), uniform_laplace=(0.5,), adap_gaussian=(0.29,))
    lines = "\n\n".join(page(made, "made")).splitlines()
    cells = {line.split(" | ")[0]: line.split(" | ")[1:] for line in lines if line.startswith("| the ")}
    assert cells["| the uniform-gaussian"][:3] == ["Gaussian, true ε = 585, arriving 462", "2", "100"]
    assert cells["| the uniform-gaussian"][-1] == " |"
    assert cells["| the uniform-laplace"][0] == "Laplace, true ε = 890, arriving 680"
    assert cells["| the adap-gaussian"][1:3] == ["1", "74"]
    assert cells["| the adap-gaussian"][-1] == "−.0100, 1/1 |"
    [lacking] = [line for line in lines if line.startswith("**Fewer splits than planned so far:**")]
    assert "authors/uniform-gaussian (2 of 3)" in lacking
    [absent] = [line for line in lines if line.startswith("**Not run yet:**")]
    assert "once/privunit-10" in absent
    assert all(f"authors/{key}" in absent for key in AUTHORS if key.startswith("bgtplanner"))


def test_every_table_is_a_rectangle() -> None:
    text = "\n\n".join(page(results(uniform_gaussian=(0.3,)), "made"))
    for table in [part.splitlines() for part in text.split("\n\n") if part.startswith("| ")]:
        assert len({line.count(" | ") for line in table}) == 1
