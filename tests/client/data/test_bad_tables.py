"""Damaged tables of every task and form: each is read, or refused with an error of ours."""

import gzip
from pathlib import Path
from random import Random

import pytest

from client.data.dataset import Source
from client.tasks.registry import CLIENT_TASKS
from common.errors import FedloomError, public_reason
from tests.support.tables import FORMS, TABLES

TABLE_COUNT = 2_000
CELLS = (
    *("", " ", "nan", "NA", "-", "None", "inf", "-inf", "1e999"),
    *("1e400", "-0", "1.5", "1,5", "1.234,5", "1,234", "1 234.5"),
    *("12 %", "€5", "$1", "four", "0x10", "1_000", "٣", "−1", "+5"),
    *("999999999999999999999999", "1.2.3", "--1", "e", "1e"),
    *("2024-05-31", "2024-05-31T13:00:00Z", "2024-05-31 13:00+02:00"),
    *("31/05/2024", "05/31/2024 9:00", "1.2.2024", "45443.5"),
    *("2024-02-30", "2024-05-31 25:00", "9024-05-31", "0001-01-01"),
    *("1396437466", "1396437466940", "1396437466940000", "1e18"),
    *('"', "''", '"a', 'a"b', "a,b", "a;b", "a\tb", "a|b", "a\nb"),
    *("a\rb", "::", "\x1f", "\ufeff", "\u202e", "é", "🙂", "→", " → "),
    *("{}", "[1, 2]", "null", "true", "x" * 100_000, "\\", "/", "=cmd()", "../../etc", "%s%n", "{0}", "demo"),
)
BYTES = (
    *(b"", b"\0", b"\n", b"\r", b'"', b",", b"\t", b";", b"|", b"\xff", b"\xc3"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"{", b"}", b"PAR1"),
)


def damaged_cells(titles: list[str], rows: list[list[str]], random: Random) -> None:
    """Change, repeat, move or remove cells, rows and columns in place."""
    for _ in range(random.randint(1, 4)):
        row, place = random.randrange(len(rows)), random.randrange(len(titles))
        match random.randrange(8):
            case 0:
                titles[place] = random.choice((*CELLS, *titles, titles[place].upper(), titles[place] + " "))
            case 1:
                for other in rows:
                    other[place] = random.choice(CELLS)
            case 2:
                rows.append(list(rows[row]))
            case 3 if len(titles) > 1:
                for other in (titles, *rows):
                    del other[place]
            case 4:
                rows[row] = [""] * len(titles)
            case _:
                rows[row][place] = random.choice(CELLS)


def damaged_bytes(content: bytes, random: Random) -> bytes:
    """Cut, repeat or overwrite a run of bytes, or put in bytes that mean something."""
    for _ in range(random.randint(0, 3)):
        start = random.randint(0, len(content))
        stop = min(len(content), start + random.choice((0, 1, 1, 2, 10, 1_000)))
        inside = random.choice((*BYTES, random.randbytes(3), content[start:stop] * 2))
        content = content[:start] if random.random() < 0.1 else content[:start] + inside + content[stop:]
    return content


def damaged_table(folder: Path, task: str, name: str, random: Random) -> Path:
    """Write a damaged table."""
    titles, rows = list(TABLES[task][0]), [list(row) for row in TABLES[task][1]]
    if random.random() < 0.8:
        damaged_cells(titles, rows, random)
    content = FORMS[name](titles, rows)
    if random.random() < 0.5:
        inner = gzip.decompress(content) if name.endswith(".gz") and random.random() < 0.7 else b""
        content = gzip.compress(damaged_bytes(inner, random)) if inner else damaged_bytes(content, random)
    path = folder / name
    path.write_bytes(content)
    return path


def outcome(task: str, path: Path) -> FedloomError | None:
    """Return the error with which a reader refuses a table."""
    try:
        CLIENT_TASKS[task].read(Source(str(path)), None, 0)
    except FedloomError as error:
        return error
    return None


@pytest.mark.parametrize("task", TABLES)
def test_a_damaged_table_is_read_or_refused(task: str, tmp_path: Path) -> None:
    """400 tables of each task; both ends are met often, so the test tests something."""
    refused = 0
    for seed in range(list(TABLES).index(task), TABLE_COUNT, len(TABLES)):
        random = Random(seed)
        path = damaged_table(tmp_path, task, random.choice(list(FORMS)), random)
        error = outcome(task, path)
        if error is not None:
            refused += 1
            assert str(path) not in public_reason(error)
            assert len(str(error)) < 2_000
    count = TABLE_COUNT / len(TABLES)
    assert 0.1 * count < refused < 0.95 * count
