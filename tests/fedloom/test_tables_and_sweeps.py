"""Tables in memory, options of the command line, sweeps, and the object for notebooks."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch

import fedloom
from deploy.federation import sweep as sweeps
from deploy.federation.sweep import half_interval
from fedloom.arguments import as_words, in_python_words, stored

COLUMNS = {"user": "Customer no.", "item": "Film", "rating": "Stars"}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def ratings() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    people, films = rng.integers(0, 12, 400), rng.integers(0, 20, 400)
    stars = np.clip(np.round(3 + films % 5 / 2 - 1 + rng.normal(0, 0.5, 400)), 1, 5)
    table = pl.DataFrame({"Customer no.": people, "Film": [f"film {k}" for k in films], "Stars": stars})
    return table.unique(["Customer no.", "Film"], maintain_order=True)


def test_tables_of_all_packages_are_one_and_the_same_file(ratings: pl.DataFrame, tmp_path: Path, runs: Path) -> None:
    ratings.write_csv(tmp_path / "ratings.csv")
    tables: list[Any] = [ratings, ratings.to_arrow(), tmp_path / "ratings.csv"]
    reports = [fedloom.check(table, task="ratings", columns=COLUMNS) for table in tables]
    assert len({report.vocabulary for report in reports}) == 1
    assert {(report.reading and report.reading.rows, report.units) for report in reports} == {(len(ratings), 12)}
    assert reports[0].files[0].ignored == ()


def test_files_of_tables_are_private_and_removed(ratings: pl.DataFrame) -> None:
    with stored(ratings) as path:
        assert Path(path).parent.stat().st_mode & 0o077 == 0
        assert pl.read_parquet(path).equals(ratings)
    assert not Path(path).exists()
    nested = pa.table({"a": pa.array([None], pa.run_end_encoded(pa.int32(), pa.int8()))})
    with pytest.raises(fedloom.DataError, match="the table cannot be read"), stored(nested):
        pass


class Indexed:
    """Table with an index that is no row number, as pandas has it, which is not installed for tests."""

    def __init__(self, table: pl.DataFrame, kind: str) -> None:
        self.table, self.kind = table, kind
        self.index = SimpleNamespace(names=[None], dtype=SimpleNamespace(kind=kind))

    def reset_index(self, *, drop: bool) -> pl.DataFrame:
        return self.table.drop("index") if drop else self.table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


PERIOD = "pandas.period"
_INIT = {"__init__": lambda self: pa.ExtensionType.__init__(self, pa.int64(), PERIOD)}
_BYTES = {"__arrow_ext_serialize__": lambda self: b"", "__arrow_ext_deserialize__": lambda storage, content: Period()}
Period: Any = type("Period", (pa.ExtensionType,), _INIT | _BYTES)
"""Type of pandas' periods in Arrow."""


def test_times_that_are_an_index_without_a_name_are_a_column_and_row_numbers_are_none() -> None:
    table = pl.DataFrame({"index": [0, 1], "a": [0.5, 1.5]})
    for kind, titles in (("M", ["index", "a"]), ("O", ["index", "a"]), ("i", ["a"])):
        with stored(Indexed(table, kind)) as path:
            assert pl.read_parquet(path).columns == titles


def test_categories_are_text_and_periods_are_no_numbers() -> None:
    films = pl.Series(["a", "b", "a"], dtype=pl.Categorical)
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        with stored(pl.DataFrame({"film": films.cast(kind)})) as path:
            assert pl.read_parquet(path)["film"].cast(pl.String).to_list() == ["a", "b", "a"]
    pa.register_extension_type(Period())
    months = pa.ExtensionArray.from_storage(Period(), pa.array([473352, 473353], pa.int64()))
    with (
        pytest.raises(fedloom.DataError, match=r"column 'time' has periods; .*to_timestamp"),
        stored(pa.table({"time": months})),
    ):
        pass
    pa.unregister_extension_type(PERIOD)


def test_what_is_no_table_is_named() -> None:
    with pytest.raises(fedloom.DataError, match="a LazyFrame is no file, folder or data frame"):
        fedloom.check(pl.DataFrame({"a": [1]}).lazy(), task="ratings")


def test_equal_tables_that_train_are_one_file_that_stays(ratings: pl.DataFrame, runs: Path) -> None:
    def path_of(table: pl.DataFrame) -> Path:
        with stored(table, trains=True) as path:
            return Path(path)

    first, again, other = path_of(ratings), path_of(ratings.clone()), path_of(ratings.head(9))
    assert first == again != other
    assert first.parent == runs.parent / ".fedloom" / "tables"
    assert first.stat().st_mode & 0o077 == 0
    assert pl.read_parquet(first).equals(ratings)


def test_a_federation_fits_and_predicts(ratings: pl.DataFrame, runs: Path) -> None:
    federation = fedloom.Federation("ratings", seed=3)
    with pytest.raises(fedloom.ConfigError, match=r"not fitted; call fit\(data\) first"):
        federation.predict(ratings)
    federation.fit(ratings, columns=COLUMNS)
    answers = federation.predict(ratings, user="3", top=2)
    same = fedloom.simulate("ratings", data=ratings, columns=COLUMNS, seed=3)
    assert same.result.model_sha256 == federation.run.result.model_sha256
    assert answers == same.recommend(data=ratings, user="3", top=2), "the run remembers the columns of its table"
    assert len(answers) == 2
    by_film = fedloom.Federation("ratings").fit(ratings, by="Film", columns=COLUMNS)
    assert len(by_film.run.clients) == 20


def test_an_unknown_option_is_named_with_the_closest_one() -> None:
    calls: list[Callable[..., object]] = [fedloom.simulate, fedloom.check]
    for call in calls:
        with pytest.raises(fedloom.ConfigError, match="has no option 'colums'; did you mean 'columns'"):
            call(task="ratings", data="none.csv", colums={})
    with pytest.raises(fedloom.ConfigError, match="No such option"):
        fedloom.up("rules", epsilom=3)


CASES: list[tuple[str, dict[str, list[Any]]]] = [
    ("ratings", {"user": ["a", "b"], "item": ["x", "y"], "rating": ["1", "bad"]}),
    ("ratings", {"user": ["a", "b"], "item": ["x", "y"], "rating": [1.5, None]}),
    ("ratings", {"user": ["a", "b"], "item": ["x", "y"], "rating": ["1,234", "5"]}),
    ("ratings", {"Users": ["a", "b"], "item": ["x", "y"], "rating": [1, 2]}),
    ("ratings", {"user": ["a", "b"], "item": ["x", "y"], "rating": [1, 2], "timestamp": ["1/2/2024", "2/3/2024"]}),
    ("traffic", {"timestamp": [f"2024-01-01 {k // 2:02}:00" for k in range(40)], "kind": [*"ab" * 20], "n": [*range(5, 45)]}),
]  # fmt: skip


@pytest.mark.parametrize(("task", "columns"), CASES)
def test_a_refusal_of_a_table_names_arguments_that_work(task: str, columns: dict[str, list[Any]]) -> None:
    table = pl.DataFrame(columns)
    with pytest.raises(fedloom.DataError) as caught:
        fedloom.check(table, task=task)
    text = str(caught.value)
    assert text.startswith("the DataFrame")
    assert not any(word in text for word in ("--", "/tmp", ".parquet"))
    calls = re.findall(r"\w+=(?:\[.*?\]|\{.*?\}|\".*?\")(?:, \w+=\[.*?\])*", text)
    assert calls
    for call in calls:
        assert fedloom.check(table, task=task, **eval(f"dict({call})")).units


def test_options_in_sentences_are_arguments() -> None:
    said = {
        "say --missing bad --missing 'so so' --drop-empty x": 'say missing=["bad", "so so"], drop_empty=["x"]',
        'say --column user="Customer no.", or --no-alone': 'say columns={"user": "Customer no."}, or alone=False',
        "--delta needs --epsilon; say --set a.b=1 or --wide": 'delta needs epsilon; say settings={"a.b": "1"} or wide=True',
        "say --missing -999, --skip-lines 2 (--data to a file)": 'say missing=["-999"], skip_lines=2 (data to a file)',
        "go on with fedloom nodes --home x": "go on with fedloom nodes --home x",
    }
    for line, expected in said.items():
        with pytest.raises(fedloom.RunError) as caught, in_python_words():
            raise fedloom.RunError(line)
        assert str(caught.value) == expected


def test_options_are_words_of_the_command_line() -> None:
    words = as_words(
        {"epsilon": 8, "run_id": "a", "alone": False, "columns": COLUMNS, "settings": {"a.b": True}, "data": ""}
    )
    assert words[3:6] == [f"--column={key}={title}" for key, title in COLUMNS.items()]
    assert words[:3] + words[6:] == ["--epsilon=8", "--run-id=a", "--no-alone", "--set=a.b=true"]
    assert as_words({"seed": [1, 2], "method": ["a", "b"]}) == ["--seed=[1, 2]", "--method=a", "--method=b"]


def test_a_sweep_compares_over_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def train(words: Sequence[str]) -> dict[str, Any]:
        asked.append([*words])
        [rate] = [float(word.rpartition("=")[2]) for word in words if word.startswith("--set=training.lr")]
        seed = int(words[-2].partition("=")[2])
        value = {0.1: 0.2 * seed, 0.2: 0.2 * seed + 0.01 * (-1) ** seed, 0.3: 0.2 * seed - 0.1}[rate]
        best = {"split": "validation", "metrics": {"hr20_shown": value}}
        return {"task": "rules", "run": f"r{rate}-{seed}", "best": best, "metrics": {"hr20_shown": 9.0}}

    monkeypatch.setattr(sweeps, "call_for_json", train)
    rows = fedloom.sweep("rules", seeds=[1, 2, 3, 4], over={"training.lr": [0.3, 0.1, 0.2]}, rounds=5)
    assert len(asked) == 12
    assert asked[0][:2] == ["simulate", "--task=rules"]
    assert "--rounds=5" in asked[0]
    assert [(row["training.lr"], row["comparison"]) for row in rows] == [
        (0.1, "best mean"),
        (0.2, "no clear difference"),
        (0.3, "worse"),
    ]
    assert rows[0]["split"] == "validation"
    assert rows[0]["mean"] == pytest.approx(0.5)
    assert rows[0]["half_interval"] == pytest.approx(3.1824 * 0.2582 / 2, rel=1e-3)


def test_one_seed_has_no_interval_and_seeds_must_differ() -> None:
    assert np.isnan(half_interval([1.0]))
    with pytest.raises(fedloom.ConfigError, match="needs seeds that differ"):
        fedloom.sweep("rules", seeds=[1, 1])
    with pytest.raises(fedloom.ConfigError, match="run_id=a is of one run, and a sweep has several; remove it"):
        fedloom.sweep("rules", run_id="a")


def test_a_sweep_of_runs_without_metrics_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {"task": "rules", "run": "r1", "best": None, "metrics": {}}
    monkeypatch.setattr(sweeps, "call_for_json", lambda words: without)
    with pytest.raises(
        fedloom.ConfigError, match="run r1 has no hr20_shown: no client has data to hold out; give more"
    ):
        fedloom.sweep("rules", seeds=[1])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str, bytes]]]:
    """Run a server that answers as the Hugging Face Hub does; yield its requests."""
    seen: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            seen.append((self.path, self.headers.get("authorization", ""), body))
            answer: dict[str, Any] = {"url": f"http://{self.headers['host']}/me/model", "name": "me/model"}
            if self.path.endswith("/preupload/main"):
                files = [one["path"] for one in json.loads(body)["files"]]
                answer = {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in files]}
            if "/commit/" in self.path:
                answer = {
                    "commitUrl": f"http://{self.headers['host']}/me/model/commit/1",
                    "commitOid": "1",
                    "success": True,
                }
            self._send(answer)

        def do_GET(self) -> None:
            self._send({"id": "me/model", "siblings": [], "sha": "0"})

        def _send(self, answer: dict[str, Any]) -> None:
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield seen
    server.shutdown()
    server.server_close()


def test_a_model_goes_to_the_hub_with_its_card(
    hub: list[tuple[str, str, bytes]], ratings: pl.DataFrame, runs: Path
) -> None:
    federation = fedloom.Federation("ratings").fit(ratings, columns=COLUMNS)
    assert "me/model" in federation.push_to_hub("me/model", token="hf_test")
    assert {token for _, token, _ in hub} == {"Bearer hf_test"}
    [commit] = [body for path, _, body in hub if "/commit/" in path]
    files = {json.loads(line)["value"].get("path") for line in commit.splitlines()}
    assert {"README.md", "model.onnx", "model-card.json"} <= files


def test_what_a_notebook_has_set_in_torch_and_numpy_does_no_harm(runs: Path) -> None:
    def train() -> str:
        return fedloom.simulate("rules", data="demo:0-12", method="fedrule", rounds=1).result.model_sha256

    plain, before = train(), np.seterr(all="raise")
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.no_grad():
            assert train() == plain
        assert (torch.get_default_dtype(), torch.get_default_device().type) == (torch.float64, "meta")
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        np.seterr(**before)
    with torch.inference_mode():
        assert train() == plain
