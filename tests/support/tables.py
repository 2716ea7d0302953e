"""Tables of every task in every form."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet

Rows = Sequence[Sequence[str]]


def delimited(mark: str) -> Callable[[Sequence[str], Rows], bytes]:
    """Return a writer of rows with a mark between cells; cells are quoted if needed, but not between tabs."""

    def write(titles: Sequence[str], rows: Rows) -> bytes:
        if mark == "\t":
            return "".join("\t".join(row) + "\n" for row in (titles, *rows)).encode()
        text = io.StringIO()
        csv.writer(text, delimiter=mark, lineterminator="\n").writerows([titles, *rows])
        return text.getvalue().encode()

    return write


def json_lines(titles: Sequence[str], rows: Rows) -> bytes:
    """Return one JSON object per line."""
    return "".join(json.dumps(dict(zip(titles, row, strict=True))) + "\n" for row in rows).encode()


def parquet(titles: Sequence[str], rows: Rows) -> bytes:
    """Return columns of text."""
    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=list(titles)), sink)
    return sink.getvalue().to_pybytes()


FORMS: dict[str, Callable[[Sequence[str], Rows], bytes]] = {
    "a.csv": delimited(","),
    "semicolons.csv": delimited(";"),
    "a.tsv": delimited("\t"),
    "pipes.csv": delimited("|"),
    "mark.csv": lambda titles, rows: b"\xef\xbb\xbf" + delimited(",")(titles, rows),
    "wide.csv": lambda titles, rows: delimited(",")(titles, rows).decode().encode("utf-16"),
    "windows.csv": lambda titles, rows: delimited(";")(titles, rows).replace(b"\n", b"\r\n"),
    "a.csv.gz": lambda titles, rows: gzip.compress(delimited(",")(titles, rows)),
    "a.tsv.gz": lambda titles, rows: gzip.compress(delimited("\t")(titles, rows)),
    "a.jsonl": json_lines,
    "a.ndjson": json_lines,
    "a.jsonl.gz": lambda titles, rows: gzip.compress(json_lines(titles, rows)),
    "a.parquet": parquet,
}
"""Name of a file -> its bytes."""

TABLES: dict[str, tuple[list[str], list[list[str]]]] = {
    "rules": (
        [
            "user_id",
            "trigger_device",
            "trigger_device_id",
            "trigger_state",
            "action",
            "action_device",
            "action_device_id",
        ],
        [
            ["ann", "Light", "lamp, big", "turns on", "turn off", "Plug", "1"],
            ["bob", "Plug", "7", "turns off", "turn on", "Light", "lamp"],
            ["ann", "Light", "lamp, big", "turns off", "turn off", "Plug", "1"],
            ["cyd", "Light", "7", "", "", "", ""],
        ],
    ),
    "sessions": (
        ["user", "item", "timestamp"],
        [
            ["ann", "tea", "2024-05-31 13:00:00"],
            ["ann", "rum", "2024-05-31 13:01:00"],
            ["bob", "gin", "2024-05-31 13:00:00"],
            ["bob", "tea", "2024-05-31 13:00:30"],
            ["ann", "gin", "2024-06-01 13:00:00"],
        ],
    ),
    "traffic": (
        ["timestamp", "site", "volume", "speed"],
        [
            ["2024-05-31 13:00", "north", "5", "50.5"],
            ["2024-05-31 14:00", "north", "6", ""],
            ["2024-05-31 13:00", "east", "7", "9"],
            ["2024-05-31 15:00", "east", "8", "9.25"],
        ],
    ),
    "ratings": (
        ["user", "item", "rating", "timestamp"],
        [
            ["ann", "tea", "4", "2024-05-31"],
            ["bob", "tea", "2.5", "2024-06-01"],
            ["ann", "milk", "1", "2024-06-02"],
            ["cyd", "", "", ""],
        ],
    ),
    "markets": (
        ["market", "user", "item", "rating"],
        [
            ["uk", "ann", "tea", "5"],
            ["uk", "bob", "tea", "4"],
            ["de", "ann", "rum", "3.5"],
            ["de", "bob", "tea", ""],
        ],
    ),
}
"""Task -> titles and rows that it can read."""


def write(folder: Path, name: str, titles: Sequence[str], rows: Rows) -> Path:
    """Write a table in the form of a name in `FORMS`."""
    path = folder / name
    path.write_bytes(FORMS[name](titles, rows))
    return path
