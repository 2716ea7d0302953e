"""Tables as people have them: every row is accounted for, and what is not read is said."""

import bz2
import json
import lzma
import re
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from client.data.tables.reader import read_table
from client.data.tables.schema import Dialect
from client.tasks.ratings.data.raters import SCHEMA
from common.errors import DataError
from common.tasks.ratings.vocabulary import ProductCatalogue
from deploy.cli.app import app
from deploy.data.check import check_data

HEADER = "user,item,rating"
RATINGS = [f"u{k % 9},i{k % 13},{k % 5 + 1}" for k in range(60)]
DAY = datetime(2024, 1, 1)


def written(folder: Path, *lines: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def hours(folder: Path, head: str, *rows: str) -> Path:
    return written(folder, head, *rows, name="road.csv")


def reading_of(path: Path, task: str = "ratings", **options: Any) -> tuple[int, int, list[str]]:
    """Return rows read and kept, and the sentences on the others."""
    report = check_data(task, str(path), dialect=Dialect.of(**options))
    assert report.reading is not None
    return report.reading.rows, report.reading.records, [*map(str, report.reading.dropped), *report.notes]


@pytest.mark.parametrize(
    ("above", "row", "below", "left_out"),
    [
        (["sep=,"], "{}", [], 0),
        (["# made on a Monday", ""], "{}", [], 0),
        (["Ratings of all shops"], "{}", [], 0),
        ([], "{},", [], 0),
        ([], "{}", ["Total rows: 60"], 1),
        ([], "{}", ["Total,,180", "(60 rows)"], 2),
    ],
)
def test_lines_around_a_table_are_no_rows(
    above: list[str], row: str, below: list[str], left_out: int, tmp_path: Path
) -> None:
    path = written(tmp_path, *above, HEADER, *map(row.format, RATINGS), *below)
    assert reading_of(path)[:2] == (60 + left_out, 60)
    assert len(read_all("ratings", str(path)).units) == 9


@pytest.mark.parametrize("suffix", ["bz2", "xz", "zst"])
def test_further_compressions_are_read(suffix: str, tmp_path: Path) -> None:
    text = "\n".join([HEADER, *RATINGS]).encode()
    pack: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "xz": lzma.compress}
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(pack[suffix](text) if suffix in pack else pyarrow.Codec("zstd").compress(text, asbytes=True))
    assert reading_of(path)[:2] == (60, 60)


def test_an_array_of_json_and_identifiers_of_parquet_are_read(tmp_path: Path) -> None:
    records = [dict(zip(HEADER.split(","), row.split(","), strict=True)) for row in RATINGS]
    assert reading_of(written(tmp_path, json.dumps(records, indent=1), name="a.json"))[:2] == (60, 60)
    columns = {name: [record[name] for record in records] for name in ("item", "rating")}
    users = [UUID(int=k % 9).bytes for k in range(60)]
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({**columns, "user": pyarrow.array(users, pyarrow.binary(16))}), path)
    assert {unit.name for unit in read_all("ratings", str(path)).units} == {str(UUID(int=k)) for k in range(9)}


def test_headers_of_recbole_in_upper_case_or_with_blanks(tmp_path: Path) -> None:
    rows = [row.replace(",", "\t") for row in RATINGS]
    assert reading_of(written(tmp_path, "User_ID : Token\tItem_ID:TOKEN\tRating:float", *rows, name="a.inter"))[1] == 60


def test_one_thing_has_one_name(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "u,Café,1", "v,Cafe\u0301,2", "w,\u200bCafé\ufeff,3", "x, Café ,4")
    assert read_all("ratings", str(path)).vocabulary.items == ("Café",)
    assert ProductCatalogue.from_json('{"items":["Cafe\u0301"],"low":0,"high":5}').items == ("Café",)


def test_every_rating_is_kept_merged_or_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "u,a,1", "u,a,2", ",,", "v,,", "u,(not set),3", "v,b,4")
    rows, kept, said = reading_of(path)
    assert (rows, kept) == (6, 3)
    assert said == [
        "1 row without any text skipped",
        "1 row with '(not set)' left out",
        "1 rating replaced by a later one of the same person and product",
    ]


def test_an_order_without_dates_is_never_cut_by_pauses(tmp_path: Path) -> None:
    path = written(tmp_path, "user,item,timestamp", *(f"u{k % 3},i{k % 7},{k * 5000}" for k in range(60)))
    assert [len(unit.sessions) for unit in read_all("sessions", str(path)).units] == [1, 1, 1]


@pytest.mark.parametrize("finer_first", [True, False])
def test_readings_whose_interval_changes_come_to_one_grid(finer_first: bool, tmp_path: Path) -> None:
    quarters = [f"{DAY + timedelta(minutes=15 * k) + (not finer_first) * timedelta(hours=400)},a,2" for k in range(800)]
    whole = [f"{DAY + timedelta(hours=k + 200 * finer_first)},a,8" for k in range(400)]
    path = hours(tmp_path, "timestamp,site,volume", *(quarters + whole if finer_first else whole + quarters))
    assert reading_of(path, "traffic")[:2] == (1200, 600)
    [series] = read_all("traffic", str(path)).units
    assert series.observed.all()
    assert set(series.values[:, 0].tolist()) == {8.0}


@pytest.mark.parametrize("minutes", [15, 60])
def test_a_clock_that_jitters_fills_every_step(minutes: int, tmp_path: Path) -> None:
    times = (DAY + timedelta(minutes=minutes * k, seconds=30 if k % 3 else -30) for k in range(960))
    path = hours(tmp_path, "timestamp,site,speed", *(f"{time},a,{k % 24}" for k, time in enumerate(times)))
    [series] = read_all("traffic", str(path)).units
    assert series.observed.all()
    assert (str(series.start), len(series.values)) == ("2024-01-01T00:00", 960 * minutes // 60)


def test_a_mistyped_year_is_named_and_left_out(tmp_path: Path) -> None:
    rows = [f"{DAY + timedelta(hours=k)},a,{k % 24}" for k in range(200)]
    path = hours(tmp_path, "timestamp,site,volume", *rows, "2042-01-01 00:00:00,a,5")
    assert reading_of(path, "traffic") == (
        201,
        200,
        ["1 reading far from all others of their sensor left out (is a year mistyped?)"],
    )
    assert check_data("traffic", str(path)).last == "2024-01-09 07:00:00"


def test_row_numbers_and_words_are_no_variables(tmp_path: Path) -> None:
    rows = [f"{k},{DAY + timedelta(hours=k)},{k + 1},{k % 24},ok" for k in range(200)]
    for title in ("Unnamed: 0", ""):
        path = hours(tmp_path, f"{title},timestamp,row,volume,quality", *rows)
        assert read_all("traffic", str(path)).vocabulary.variables == ("volume",)
    said = reading_of(path, "traffic")[2]
    assert "column 'row' numbers the rows and is not read" in said
    assert "column 'quality' holds no number and is not read" in said


@pytest.mark.parametrize("stand_in", ["-999", "9999", "65535", "1e20", "-1"])
def test_numbers_that_stand_for_missing_ones_are_asked_about(stand_in: str, tmp_path: Path) -> None:
    rows = [f"{DAY + timedelta(hours=k)},{stand_in if k % 40 == 3 else k % 24}" for k in range(200)]
    path = hours(tmp_path, "timestamp,volume", *rows)
    with pytest.raises(
        DataError, match=f"recurs far outside .*--missing {float(stand_in):.12g} if it".replace("+", r"\+")
    ):
        read_all("traffic", str(path))
    assert reading_of(path, "traffic", missing=[stand_in])[:2] == (200, 195)
    assert reading_of(path, "traffic", missing=["none"])[1] == 200


@pytest.mark.parametrize("head", ["date,time", "time,date", "date,hour"])
def test_dates_and_clock_times_in_two_columns(head: str, tmp_path: Path) -> None:
    whole = [DAY + timedelta(hours=k) for k in range(200)]
    cells = [(f"{one:%Y-%m-%d}", f"{one:%H}" if "hour" in head else f"{one:%H:%M}") for one in whole]
    rows = (",".join([*(pair if head.startswith("date") else pair[::-1]), str(k % 24)]) for k, pair in enumerate(cells))
    path = hours(tmp_path, f"{head},volume", *rows)
    assert reading_of(path, "traffic")[:2] == (200, 200)
    assert len(read_all("traffic", str(path)).units[0].values) == 200


def test_a_column_a_sensor(tmp_path: Path) -> None:
    path = hours(tmp_path, ",s1,s2", *(f"{DAY + timedelta(hours=k)},{k % 24},{k % 12}" for k in range(200)))
    dataset = read_all("traffic", str(path), dialect=Dialect(wide=True))
    assert ([unit.name for unit in dataset.units], dataset.vocabulary.variables) == (["s1", "s2"], ("value",))


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"{HEADER}\nu,a,1\nv,b,\n", ["--drop-empty", "rating"]),
        (f"{HEADER}\nu,a,1\nv,b,n.d.\n", ["--missing", "n.d.", "--drop-empty", "rating"]),
    ],
)
def test_a_refusal_ends_in_an_option_that_works(text: str, remedy: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, text)
    done = command("check", path, "--task", "ratings")
    assert isinstance(done.exception, DataError)
    assert " ".join(remedy) in str(done.exception)
    assert command("check", path, "--task", "ratings", *remedy).exception is None


def test_rows_columns_and_encodings_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("user,item,rating,event\nu,Müsli,1,view\nu,tea,2,buy\nv,tea,3,View\n".encode("cp1252"))
    with pytest.raises(DataError, match="say --encoding cp1252, if Windows wrote it"):
        read_all("ratings", str(path))
    words = ["--encoding", "cp1252", "--where", "event=view", "--where", "event=View", "--ignore", "event"]
    output = command("check", path, "--task", "ratings", *words[:-2], "--json").output
    assert json.loads(output)["reading"]["records"] == 2
    (tmp_path / "b.csv").write_bytes(b"user,item,rating\nu,M\x81sli,1\n")
    with pytest.raises(DataError, match=r"line 2: not text in cp1252; save the file as UTF-8$"):
        reading_of(tmp_path / "b.csv", encoding="cp1252")
    with pytest.raises(DataError, match="no column 'evnt' for --ignore; the titles are user, item, rating, event"):
        reading_of(path, encoding="cp1252", ignore=["evnt"])


def test_separators_after_the_last_cell_of_some_rows_are_no_cells(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\na,x,1,\na,y,2\nb,x,3,,\nb,y,4\n")
    table = read_table(path, SCHEMA)
    assert table.numbers("rating").tolist() == [1, 2, 3, 4]
    path.write_text("user,item,rating\na,x,1,9\na,y,2\n")
    with pytest.raises(DataError, match="line 2: 4 cells, but the first line has 3"):
        read_table(path, SCHEMA)


def test_few_rows_without_the_last_cells_are_filled_up_and_said(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = [f"{row},x" for row in RATINGS]
    path.write_text("\n".join(["user,item,rating,note", rows[0], RATINGS[1], *rows[2:]]))
    assert reading_of(path) == (60, 60, ["1 row without the last cells, read as empty ones"])
    for lines in (
        ["user,item,rating,note", *RATINGS[:2], *rows[2:]],
        ["user,item,rating,note", RATINGS[0], *rows[:48]],
    ):
        path.write_text("\n".join(lines))
        with pytest.raises(DataError, match="line 2: 3 cells, but the first line has 4"):
            reading_of(path)


SOLVED = re.compile(r"--[a-z-]+ (?:[\w.]+=)?(?:\"[^\"]*\"|[^\s;,\"]+)")
STAMPS = [DAY + timedelta(hours=k) for k in range(200)]


@pytest.mark.parametrize(
    ("task", "head", "row", "problem"),
    [
        ("ratings", HEADER, "u{0},i{1},{2},5", "4 cells, but the first line has 3"),
        ("ratings", HEADER, "u{0},i{1},{3}", "is not a number"),
        ("ratings", f"{HEADER},x", "u{0},i{1},{2},y{4}", "5 cells, but the first line has 4"),
        ("sessions", "user,item,timestamp", "u{0},i{1},1.70925{0}E+12", "exact to 1,000 seconds only"),
        ("sessions", "user,item,timestamp", "u{0},i{1},{5}", "is not a time"),
        ("traffic", "timestamp,kind,volume", "{6},{7},1", "separates 200 readings from others of the same time"),
        ("traffic", "timestamp,site,kind,volume", "{6},s,{7},1", "separates 200 readings"),
        ("markets", "item1,item2,rating", "i{0},i{1},{3}", "is not a number"),
    ],
)
def test_the_options_of_a_refusal_work(task: str, head: str, row: str, problem: str, tmp_path: Path) -> None:
    words = ["bad", "so so", "meh", "x", "y y", "z"]
    rows = [
        row.format(
            k % 9, k % 13, k % 5 + 1, words[k // 9 % 6] if k % 9 == 3 else 2, ",z" if k % 9 == 3 else "",
            f"t{k}" if k % 9 == 3 else f"{DAY + timedelta(minutes=k)}", STAMPS[k // 2], "ab"[k % 2],
        )
        for k in range(400)
    ]  # fmt: skip
    path = written(tmp_path, head, *rows, name="road.csv")
    done = command("check", path, "--task", task)
    assert isinstance(done.exception, DataError)
    assert problem in str(done.exception)
    said = re.split(r",? or (?=--)", str(done.exception).rpartition("say ")[2])
    for options in said:
        chosen = [word for option in SOLVED.findall(options) for word in shlex.split(option)]
        assert chosen
        assert not isinstance(command("check", path, "--task", task, *chosen).exception, DataError)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("year,month,day,hour,volume", "{0.year},{0.month},{0.day},{0.hour},{1}"),
        ("date,time,volume", "{0:%y%m%d},{0:%H%M%S},{1}"),
        ("date,time,volume", "{0:%Y%m%d},{0.hour}0000,{1}"),
        ("timestamp,volume", "{0:%Y-%m-%d %H:%M} - {2:%H:%M},{1}"),
        ("timestamp,volume", "{0:%d.%m.%Y %H:%M} - {2:%d.%m.%Y %H:%M},{1}"),
        ("timestamp,volume", "{0:%Y-%m-%dT%H:%M:%SZ}/{2:%Y-%m-%dT%H:%M:%SZ},{1}"),
        ("timestamp,volume", "{0},{1} req/s"),
        ("timestamp,note,volume", "{0},closed, later,{1}"),
        ("timestamp,volume,note", "{0},{1},closed, later"),
    ],
)
def test_dates_in_columns_spans_units_and_commas_in_texts(head: str, row: str, tmp_path: Path) -> None:
    first = DAY + timedelta(days=20)
    rows = [
        row.format(one + timedelta(days=20), 3 * k, one + timedelta(days=20, hours=1)) for k, one in enumerate(STAMPS)
    ]
    rows[1:] = [text if k % 2 or "note" not in head else text.replace(", later", "") for k, text in enumerate(rows[1:])]
    [series] = read_all("traffic", str(hours(tmp_path, head, *rows))).units
    assert (series.start.astype(object), series.values[:, 0].tolist()) == (first, [*map(float, range(0, 600, 3))])


@pytest.mark.parametrize("unit", ["/5", " stars", " out of 5 stars"])
def test_ratings_with_a_unit(unit: str, tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, *(f"{row}{unit}" for row in RATINGS))
    with pytest.raises(DataError, match="has the unit"):
        read_all(
            "ratings", str(written(tmp_path, HEADER, *(f"{row}{unit}" for row in RATINGS), "u,i,9/10", name="b.csv"))
        )
    assert read_all("ratings", str(path)).vocabulary.high == 5


def test_names_are_not_changed_by_a_spreadsheet_in_silence(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "1.0,a,1", "1,b,2", "2.0,a,3")
    assert [unit.name for unit in read_all("ratings", str(path)).units] == ["1", "2"]
    said = reading_of(written(tmp_path, HEADER, "1.23457E+11,a,1", "u,b,2"))[2]
    assert said[0].startswith("1 cell of column 'user' lost digits")


RECORDS = [dict(zip(HEADER.split(","), row.split(","), strict=True)) for row in RATINGS]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"page": 1, "data": RECORDS}),
        json.dumps({"columns": HEADER.split(","), "index": [], "data": [row.split(",") for row in RATINGS]}, indent=1),
        json.dumps([HEADER.split(","), *(row.split(",") for row in RATINGS)]),
        json.dumps({title: {k: one[title] for k, one in enumerate(RECORDS)} for title in HEADER.split(",")}),
        "\n".join(json.dumps({**one, "user": {"id": one["user"]}}) for one in RECORDS),
    ],
)
def test_objects_of_json(text: str, tmp_path: Path) -> None:
    assert reading_of(written(tmp_path, text, name="a.json"))[:2] == (60, 60)


def test_logs_of_requests_and_lists_in_cells(tmp_path: Path) -> None:
    lines = [
        f'10.0.0.{k % 3} - - [{DAY + timedelta(minutes=k):%d/%b/%Y:%H:%M:%S} +0000] "GET /p/{k % 7} HTTP/1.1" 200 99 "-"'
        for k in range(60)
    ]
    path = written(tmp_path, *lines, '10.0.0.1 - - [x] "-" 408 -', name="access.log")
    assert reading_of(path, "sessions") == (61, 60, ["1 row without any text skipped"])
    assert read_all("sessions", str(path)).units[0].name == "10.0.0.0"
    path = written(tmp_path, "user;items", *(f"u{k};['a{k}', \"b\"]" for k in range(4)))
    assert read_all("sessions", str(path)).vocabulary.items == ("b", "a0", "a1", "a2", "a3")


MATRIX = [f"u{k}," + ",".join("" if (k + j) % 3 else str((k + j) % 5 + 1) for j in range(9)) for k in range(12)]


@pytest.mark.parametrize("first", ["", "user", "Unnamed: 0"])
def test_a_matrix_of_people_and_items(first: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"{first},{','.join(f'film {j}' for j in range(9))}", *MATRIX)
    with pytest.raises(DataError, match=r"if each further column is an item, say --wide$"):
        read_all("ratings", str(path))
    ratings = read_all("ratings", str(path), dialect=Dialect(wide=True))
    assert [(unit.name, len(unit.items)) for unit in ratings.units[:2]] == [("u0", 3), ("u1", 3)]
    assert ratings.units[1].ratings.tolist() == [4.0, 2.0, 5.0]
    assert ratings.vocabulary.items[2] == "film 2"
    path = written(tmp_path, ",1,2,3", *(f"{k},{k % 2 * 3},0,0" for k in range(12)))
    with pytest.raises(DataError, match=r"'0' is the most frequent rating .*; say --missing 0 --drop-empty rating"):
        read_all("ratings", str(path), dialect=Dialect(wide=True))
    assert reading_of(path, wide=True, missing=["0"])[:2] == (6, 6)
    assert reading_of(path, wide=True, missing=["none"])[:2] == (36, 36)
    with pytest.raises(DataError, match="line 4, column 'rating': 'bad' is not a number"):
        read_all("ratings", str(written(tmp_path, ",1,2", "a,1,2", "b,3,4", "c,5,bad")), dialect=Dialect(wide=True))


@pytest.mark.parametrize(
    ("titles", "first"),
    [
        ([f"H{k:02}" for k in range(24)], 0),
        ([f"h{k}" for k in range(1, 25)], 0),
        ([f"{k:02}:00" for k in range(24)], 0),
        ([f"{k // 2:02}:{k % 2 * 30:02}" for k in range(48)], 0),
        ([f"{k}:00 - {k + 1}:00" for k in range(24)], 0),
        ([f"{(k - 1) % 12 + 1} {'AM' if k < 12 else 'PM'}" for k in range(24)], 0),
    ],
)
def test_columns_of_hours_are_one_series(titles: list[str], first: int, tmp_path: Path) -> None:
    rows = [
        f"{DAY + timedelta(days=k):%Y%m%d},a,{','.join(str(100 * k + j) for j, _ in enumerate(titles))}"
        for k in range(9)
    ]
    path = hours(tmp_path, f"date,site,{','.join(titles)}", *rows)
    series = read_all("traffic", str(path))
    assert (str(series.units[0].start), series.vocabulary.variables) == ("2024-01-01T00:00", ("value",))
    per_hour = len(titles) // 24
    assert series.units[0].values[:25, 0].tolist() == [
        (0.5 if per_hour > 1 else 0) + per_hour * k for k in range(24)
    ] + [100.5 if per_hour > 1 else 100]
    assert f"columns '{titles[0]}' to '{titles[-1]}' are times of a day" in " ".join(reading_of(path, "traffic")[2])


def test_a_thousands_point_is_decided_by_the_file_or_asked_about(tmp_path: Path) -> None:
    rows = [f"{one};{k + 1}.000;{k}" for k, one in enumerate(STAMPS[:24])]
    path = hours(tmp_path, "timestamp;volume;price", *rows)
    problem = "line 2, column 'volume': '1.000' has a decimal mark or a thousands separator .*; say --decimal comma or"
    with pytest.raises(DataError, match=problem):
        read_all("traffic", str(path))
    assert read_all("traffic", str(path), dialect=Dialect(decimal="comma")).units[0].values[0, 0] == 1000
    for price, value in (("1.234,5", 1000), ("0,5", 1000), ("2.5", 1), ("€ 12,50", 1000)):
        path = hours(tmp_path, "timestamp;volume;price", *rows, f"2024-01-02;9;{price}")
        [series] = read_all("traffic", str(path), dialect=Dialect(ignore=("price",))).units
        assert series.values[0, 0] == value


def test_mixed_units_are_converted_or_named(tmp_path: Path) -> None:
    path = hours(
        tmp_path, "timestamp,power", *(f"{one},{f'{k + 1} kW' if k % 3 else '500 W'}" for k, one in enumerate(STAMPS))
    )
    assert read_all("traffic", str(path)).units[0].values[:3, 0].tolist() == [500, 2000, 3000]
    path = hours(
        tmp_path, "timestamp,heat", *(f"{one},{f'{k} °C' if k % 9 else '68 °F'}" for k, one in enumerate(STAMPS))
    )
    done = command("check", path, "--task", "traffic")
    assert "line 2, column 'heat': '68 °F' has the unit °F, while most have °C (23 of 200 cells)" in str(done.exception)
    option = shlex.split(SOLVED.findall(str(done.exception))[0])
    assert option == ["--missing", "68 °F"]
    assert command("check", path, "--task", "traffic", *option).exception is None


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"\xef\xbb\xbf<!DOCTYPE html><table><tr><td>user", "a page of HTML or XML"),
        (b"<html>\n<table>", "a page of HTML or XML"),
        (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old workbook"),
        (b"SQLite format 3\0", "a database"),
    ],
)
def test_what_is_no_table_is_named(content: bytes, form: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=f"a.csv: {form}, not text; save the table as CSV in UTF-8$"):
        read_all("ratings", str(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_bytes(b"<user>,<item>,<rating>\na,x,5\n")
    with pytest.raises(DataError, match="'<user>' is near"):
        read_all("ratings", str(tmp_path / "a.csv"))


def test_numbered_columns_beside_clocks_are_variables_and_records_are_no_cells(tmp_path: Path) -> None:
    titles = [str(k) for k in range(1, 25)]
    path = hours(tmp_path, f"timestamp,{','.join(titles)}", *(f"{one},{','.join(titles)}" for one in STAMPS))
    assert read_all("traffic", str(path)).vocabulary.variables == tuple(titles)
    records = pyarrow.table({"user": ["a"], "x": [{"a": 1}], "y": [1]})
    pyarrow.parquet.write_table(records, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column 'x': a cell is of type struct"):
        read_all("ratings", str(tmp_path / "a.parquet"), dialect=Dialect(wide=True))
    path = hours(tmp_path, f"date,{','.join(f'H{k}' for k in range(24))}")
    with pytest.raises(DataError, match="has a header but no rows"):
        read_all("traffic", str(path))


def test_columns_beside_hours_and_beyond_a_day_are_asked_about(tmp_path: Path) -> None:
    rows = [f"{DAY + timedelta(days=k):%Y-%m-%d},{k},{','.join(map(str, range(25)))}" for k in range(12)]
    path = hours(tmp_path, f"date,Total,{','.join(f'H{k}' for k in range(1, 26))}", *rows)
    words: list[str] = []
    for problem in ("more than 24 hours", "holds numbers beside columns of hours"):
        done = command("check", path, "--task", "traffic", *words)
        assert problem in str(done.exception)
        words += shlex.split(SOLVED.findall(str(done.exception))[0])
    assert words == ["--ignore", "H25", "--ignore", "Total"]
    reading = json.loads(command("check", path, "--task", "traffic", *words, "--json").output)["reading"]
    assert (reading["rows"], reading["records"]) == (288, 288)


def test_a_column_of_ambiguous_numbers_is_never_left_out_in_silence(tmp_path: Path) -> None:
    path = hours(tmp_path, "timestamp;flow;heat", *(f"{one};1.{100 + k};{k % 24}" for k, one in enumerate(STAMPS)))
    with pytest.raises(DataError, match=r"column 'flow': '1.100' has a decimal mark or a thousands separator"):
        read_all("traffic", str(path))
    path = hours(tmp_path, "timestamp,flow,heat", *(f"{one},{k % 24},NA" for k, one in enumerate(STAMPS)))
    assert read_all("traffic", str(path)).vocabulary.variables == ("flow",)
    assert "column 'heat' holds no number and is not read" in reading_of(path, "traffic")[2]


def test_ratings_of_netflix_have_their_item_above(tmp_path: Path) -> None:
    path = written(tmp_path, "7:", "a,3,2005-09-06", "b,5,2005-09-07", "9:", "a,1,2005-09-08", name="combined.txt")
    ratings = read_all("ratings", str(path))
    assert [(unit.name, unit.ratings.tolist()) for unit in ratings.units] == [("a", [3, 1]), ("b", [5])]
    assert ratings.vocabulary.items == ("7", "9")
    path.write_text("7:\na,3,2005-09-06\nb,good,2005-09-07\n")
    with pytest.raises(DataError, match="line 3, column 'rating': 'good' is not a number"):
        read_all("ratings", str(path))
    path.write_text("7:\n9:\n")
    with pytest.raises(DataError, match="has lines of items and no rater"):
        read_all("ratings", str(path))


@pytest.mark.parametrize(
    ("above", "row", "remedy"),
    [
        (["# a log"], "a b c", "line 1: not item ids alone; say --skip-lines 1$"),
        ([], "2024-01-01 10:00:00 10.0.0.1 /p/1", "line 1: not item ids alone; write a table with titles such as"),
        ([], "3 -1 4 -1 -2", "line 1: not item ids alone; write a table with titles such as user,item,timestamp$"),
    ],
)
def test_lines_of_logs_and_sequences_are_no_sessions(above: list[str], row: str, remedy: str, tmp_path: Path) -> None:
    path = written(tmp_path, *above, *[row] * 9, name="a.txt")
    with pytest.raises(DataError, match=remedy):
        read_all("sessions", str(path))
    if above:
        assert read_all("sessions", str(path), dialect=Dialect(skip_lines=1)).vocabulary.items == ("a", "b", "c")


@pytest.mark.parametrize(
    ("task", "lines", "problem"),
    [
        (
            "traffic",
            [f"01/{k + 1:02}/2024 00:00,4,N,5" for k in range(20)],
            "line 1 is a row of data; write a line of titles",
        ),
        ("traffic", ["week,sales", *(f"2023-W{k + 10},{k}" for k in range(20))], "say --column timestamp=week$"),
        (
            "traffic",
            ["MESS_DATUM;x", *(f"20240101{k:02};{k}" for k in range(20))],
            "say --column timestamp=MESS_DATUM$",
        ),
        (
            "ratings",
            ["3,99,-9.5,8.0,99", *["3,99,-9.5,8.0,99"] * 9],
            r"the titles are 3, 99, -9.5, 8.0, 99; if the file",
        ),
    ],
)
def test_titles_that_are_missing_or_unusual(task: str, lines: list[str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem):
        read_all(task, str(written(tmp_path, *lines)))
