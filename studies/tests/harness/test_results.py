"""The stored form: written and read back without loss, and refused if malformed."""

from pathlib import Path

import pytest

from common.errors import DataError
from studies.harness.results import Results, run_files
from studies.harness.row import NO_SEED, About, Row, RowKey, Trial

KEY = RowKey("set", "default", "row")
HEADER = "set,protocol,row,seed,round,client,metric,value\n"
LINE = "set,default,row,0,,,mse,0.5\n"


def results() -> Results:
    trial = Trial({"mse": 0.123456789, "rho": float("nan")}, {10: {"mse": 0.2}}, {"fr": {"mse": 0.1}})
    row = Row(KEY, About("Row", {"lr": 0.1}, {"point": "lr 0.1"}, {"lr 0.1": {"loss": 0.3}}), {0: trial})
    data = Row(RowKey("set", "default", "data"), About("data set"), {NO_SEED: Trial({"homes": 125})})
    return Results({"made": "today", "versions": {}}, {KEY: row, data.key: data})


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results().save(tmp_path)
    read = Results.load(tmp_path)
    assert read.made == {"made": "today", "versions": {}}
    assert read.rows[KEY].trials[0] == Trial({"mse": 0.123456789}, {10: {"mse": 0.2}}, {"fr": {"mse": 0.1}})
    assert read.rows[KEY].about == results().rows[KEY].about
    assert read.rows_of("set")["data"].only == {"homes": 125}
    texts = [(tmp_path / name).read_text("utf-8") for name in ("runs.csv", "rows.json")]
    read.save(tmp_path)
    assert [(tmp_path / name).read_text("utf-8") for name in ("runs.csv", "rows.json")] == texts


def test_every_record_has_a_line_of_its_own_in_sorted_order(tmp_path: Path) -> None:
    results().save(tmp_path)
    lines = (tmp_path / "runs.csv").read_text("utf-8").splitlines()
    assert lines[0] + "\n" == HEADER
    assert lines[1:] == [
        "set,default,data,,,,homes,125",
        "set,default,row,0,,,mse,0.123456789",
        "set,default,row,0,,fr,mse,0.1",
        "set,default,row,0,10,,mse,0.2",
    ]
    rows = (tmp_path / "rows.json").read_text("utf-8").splitlines()
    assert [line.partition(":")[0] for line in rows[1:-1]] == ['""', '"set/default/data"', '"set/default/row"']


def test_large_results_stand_in_one_file_for_each_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (both := results()).row(other := RowKey("other", "default", "row")).trials[0] = Trial({"mse": 0.5})
    both.rows[other].about.title = "Row"
    both.save(tmp_path)
    monkeypatch.setattr("studies.harness.results.MOST_BYTES", len((tmp_path / "runs.csv").read_bytes()) - 1)
    both.save(tmp_path)
    assert [path.name for path in run_files(tmp_path)] == ["runs-other.csv", "runs-set.csv"]
    assert (tmp_path / "runs-other.csv").read_text("utf-8") == HEADER + "other,default,row,0,,,mse,0.5\n"
    assert Results.load(tmp_path).rows[other].trials == both.rows[other].trials
    assert Results.load(tmp_path).rows[KEY].trials[0].clients == {"fr": {"mse": 0.1}}
    monkeypatch.undo()
    Results.load(tmp_path).save(tmp_path)
    assert [path.name for path in run_files(tmp_path)] == ["runs.csv"]


def test_a_study_without_files_has_no_rows(tmp_path: Path) -> None:
    assert Results.load(tmp_path / "none").rows == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set,protocol,row,seed,round,client,metric\n" + LINE, "line 1, column 'value'"),
        (HEADER + LINE.replace("0.5", "nan"), "line 2, column 'value': 'nan' is not a finite number"),
        (HEADER + LINE.replace("row,0", "row,x"), "line 2, column 'seed': 'x' is not a finite number"),
        (HEADER + LINE.replace("row", "other"), "line 2, column 'row': row 'set/default/other' is not in rows.json"),
        (HEADER + LINE + LINE, "line 3, column 'metric': the same measurement stands on an earlier line"),
        (HEADER + "set,default,row\n", "line 2: 3 cells instead of 8"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    results().save(tmp_path)
    (tmp_path / "runs.csv").write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"runs\.csv") as caught:
        Results.load(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "{}", '{"": {}, "set/row": {}}', '{"": {}, "a/b/c": {"colour": 1}}', "[]"])
def test_malformed_rows_are_refused(text: str, tmp_path: Path) -> None:
    results().save(tmp_path)
    (tmp_path / "rows.json").write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"rows\.json: the rows cannot be read"):
        Results.load(tmp_path)
