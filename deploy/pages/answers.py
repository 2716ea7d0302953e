"""Answers of a finished run as tables, JSON and rows of a spreadsheet, and examples for the live page."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from client.tasks.lists import two_digits
from common.errors import ConfigError, FedloomError
from common.files import expand_home
from common.options import Scalar
from common.text import printable
from deploy.files import write_file
from deploy.tasks.registry import DEPLOY_TASKS, ask
from deploy.tasks.spec import Answers, DeployTask, Example, TrainedRun

if TYPE_CHECKING:
    from rich.table import Table

    from deploy.cli.options import DataRequest
    from server.record.folder import RunDirectory
    from server.record.result import Result

Format = Literal["table", "csv", "json", "yaml"]

COLUMNS = ("user", "rank", "kind", "what", "score", "why")
"""Columns of a batch, one row per recommendation."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that a spreadsheet would run as a formula."""

MAX_CELL = 2000
"""Largest number of characters of a cell."""

MIN_TWO_DECIMALS = 0.1
"""Value from which two digits after the decimal point are shown."""


def rounded(answers: Answers) -> list[dict[str, Scalar]]:
    """Return the rows with every number to two digits."""
    return [{k: two_digits(v) if isinstance(v, float) else v for k, v in row.items()} for row in answers.rows]


def batch_rows(batch: Iterable[Answers]) -> Iterator[dict[str, Scalar]]:
    """Yield a row with `COLUMNS` for each answer."""
    for answers in batch:
        what = answers.what or next(iter(answers.columns.values()))[0]
        for rank, row in enumerate(rounded(answers), start=1):
            score, why = row.get(answers.score, ""), row.get("why", "")
            values = (answers.user, rank, answers.noun, row.get(what, ""), score, why)
            yield dict(zip(COLUMNS, values, strict=True))


def to_yaml(task: DeployTask, batch: Sequence[Answers], run: str) -> str:
    """Return the answers to one query as a configuration that another program reads.

    Raises:
        ConfigError: The task has no such form, or there are several queries.
    """
    if task.to_yaml is None:
        raise ConfigError(f"--format yaml does not apply to task {task.name}; set --format to csv or json")
    if len(batch) != 1:
        raise ConfigError("--format yaml writes the answers to one query; remove --all")
    return task.to_yaml(batch[0], run)


def to_csv(rows: Iterable[Mapping[str, Scalar]]) -> str:
    """Return rows with `COLUMNS` as CSV.

    A text that a spreadsheet would run gets a leading `'`. Control characters are replaced.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_inert(row[name]) for name in COLUMNS] for row in rows)
    return text.getvalue()


def to_json(rows: Sequence[Mapping[str, Scalar]]) -> str:
    """Return rows as one line of JSON."""
    return json.dumps(rows, ensure_ascii=False) + "\n"


def to_table(answers: Answers) -> "Table":
    """Return the answers as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", *answers.columns)
    for rank, row in enumerate(answers.rows, start=1):
        cells = (" ".join(_cell(row[key]) for key in keys).rstrip() for keys in answers.columns.values())
        table.add_row(str(rank), *map(Text, cells))
    return table


def format_of(form: str, out: Path | None, *, is_json: bool) -> Format:
    """Return the form of the output: as requested, by the suffix of the file, or a table on the terminal.

    Raises:
        ConfigError: There is no such form, or a file would hold a table.
    """
    if is_json and form not in ("", "json"):
        raise ConfigError(f"--json contradicts --format {form}; remove one of them")
    chosen = "json" if is_json else form or ("" if out is None else out.suffix.removeprefix(".").lower() or "csv")
    match chosen:
        case "table" | "" if out is None:
            return "table"
        case "csv":
            return "csv"
        case "json":
            return "json"
        case "yaml":
            return "yaml"
        case _:
            remedy = "set --format to csv, json or yaml" if out else "set --format to table, csv, json or yaml"
            raise ConfigError(f"{chosen or 'table'} is no form of {out or 'the output'}; {remedy}")


def write_answers(path: Path, text: str) -> None:
    """Write recommendations, readable by their owner only, also in place of an earlier file.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        write_file(path, text.encode(), mode=0o600, overwrite=True)
    except OSError as error:
        raise ConfigError(f"--out {path}: {error.strerror}; name a file that may be written") from None


def _inert(value: Scalar) -> Scalar:
    if not isinstance(value, str):
        return value
    shown = printable(value, MAX_CELL)
    return f"'{shown}" if value.startswith(FORMULA_STARTS) else shown


def _cell(value: Scalar) -> str:
    if not isinstance(value, float):
        return printable(str(value))
    short = two_digits(value)
    return f"{short:.2f}" if abs(short) >= MIN_TWO_DECIMALS or abs(short) < 1e-4 else f"{short:.2g}"


FILE = "examples.json"
MAX_EXAMPLES = 3  # units of data
TOP = 5  # answers of each


def add_examples(
    result: "Result",
    folder: "RunDirectory",
    source: "DataRequest | None",
    note: Callable[[str], None],
    *,
    wants_own: bool,
) -> None:
    """Store examples of a completed run, and its clusters in words, in a file of mode 0600.

    Data at joining clients are None. Examples of own data need `wants_own`; those of generated data are always stored.
    """
    from deploy.cli.options import STATE, DataRequest
    from deploy.federation.runs import origin_of
    from deploy.serving.models import open_run

    if result.status != "completed" or result.task not in DEPLOY_TASKS:
        return
    task, origin = DEPLOY_TASKS[result.task], origin_of(folder.path)
    if origin and origin.data:
        source, wants_own = DataRequest(data=origin.data), True
    try:
        checkpoint = folder.checkpoints.load_latest() if task.clusters else None
        words = task.clusters(checkpoint) if task.clusters and checkpoint else {}
        found: Sequence[Example] = ()
        if source and wants_own and (task.examples or task.everybody):
            run = open_run(folder, result.task, source, expand_home(STATE))
            found = make_examples(task, run)
        if found or words:
            content = {"examples": [as_json(one) for one in found], "clusters": words}
            write_file(folder.path / FILE, json.dumps(content).encode(), mode=0o600, overwrite=True)
    except (FedloomError, OSError) as error:
        note(f"no examples: {error}")


def make_examples(task: DeployTask, run: TrainedRun) -> Sequence[Example]:
    """Return the task's own examples, or the answers to the first queries of `fedloom recommend --all`."""
    if task.examples:
        return task.examples(run)[:MAX_EXAMPLES]
    if not (task.answer and task.everybody):
        return ()
    queries = task.everybody(run, {option.name: "" for option in task.query})
    return ask(task, run, islice(queries, MAX_EXAMPLES), TOP)


def as_json(example: Example) -> dict[str, Any]:
    """Return an example as the page reads it; answers become a table of texts."""
    if not isinstance(example, Answers):
        return asdict(example)

    def cell(value: Scalar) -> str:
        return f"{value:.2f}" if isinstance(value, float) else str(value)

    columns = example.columns.values()
    rows = [[" ".join(cell(row[key]) for key in keys).rstrip() for keys in columns] for row in example.rows]
    rows = rows or [[example.empty, *[""] * (len(columns) - 1)]]
    return {"title": example.title, "columns": list(example.columns), "rows": rows}
