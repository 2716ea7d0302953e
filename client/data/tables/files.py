"""Files of tables: their names, splits and bytes, each file read once."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import stat
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.options import Scalar
from common.registry import imported

PART = re.compile(r"(?P<split>\w[\w.]*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.parquet")
"""Name of a part: its split, its number from 0, and the number of parts."""

ATOMIC = re.compile(r".+\.(train|valid|test)\.inter")
"""Name of a split's file from RecBole."""

DATA = "data"
"""Usual folder of the parts; a configuration has a folder of its own name."""

TEST, VALIDATION = "test", ("validation", "valid")
"""Names of the splits that are held out."""


def splits_of(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split: of the folder, of `data` in it, or of its only folder with parts.

    Raises:
        DataError: Parts of a split are missing.
    """
    for path in (folder, folder / DATA):
        if found := _parts_in(path):
            return found
    inside = [found for path in _folders(folder) if (found := _parts_in(path))]
    return inside[0] if len(inside) == 1 else {}


def clients_in(folder: Path) -> list[Path]:
    """Return the folders side by side that each hold splits; none if the folder holds splits itself.

    Raises:
        DataError: Parts of a split are missing.
    """
    found = [] if splits_of(folder) else [path for path in _folders(folder) if splits_of(path)]
    return found if len(found) > 1 else []


def split_files(folder: Path) -> list[tuple[str, Path]]:
    """Return split and file of all parts of a folder, or of the folders side by side in it.

    Raises:
        DataError: Parts of a split are missing.
    """
    sources = [splits_of(folder)] if splits_of(folder) else [splits_of(path) for path in clients_in(folder)]
    return [(split, file) for splits in sources for split, files in splits.items() for file in files]


def _parts_in(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split in a folder, the test split last."""
    matches = [PART.fullmatch(path.name) for path in sorted(folder.glob("*.parquet")) if path.is_file()]
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    numbers: dict[str, int] = {}
    for match in matches:
        if match:
            found[match["split"]][int(match["part"])] = folder / match.string
            numbers[match["split"]] = max(numbers.get(match["split"], 0), int(match["parts"]))
    for split, files in found.items():
        missing = [part for part in range(numbers[split]) if part not in files]
        if missing:
            names = [f"{split}-{part:05d}-of-{numbers[split]:05d}.parquet" for part in missing[:3]]
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise DataError(f"{', '.join(names)}{more} missing; download all parts of the split", folder)
    for path in sorted(folder.glob("*.inter")):
        if match := ATOMIC.fullmatch(path.name):
            found[match[1]][len(found[match[1]])] = path
    return {split: list(found[split].values()) for split in sorted(found, key=lambda name: (name == TEST, name))}


def _folders(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]


TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".inter")
"""Suffixes of tables, without those of compression."""
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files."""
LINE_LIMIT = 2**24
"""Bytes of a line."""
CHUNK = 2**20
"""Bytes read at a time."""
EXPANSION, EXPANSION_FREE, EXPANDED_LIMIT = 100, 2**24, 8 * 10**9
"""Limit of unpacked bytes per packed byte, and of all unpacked bytes.

The first does not apply to the first `EXPANSION_FREE` bytes."""

PARQUET = b"PAR1"
NO_TABLES = {
    b"PK\x03\x04": "a workbook or ZIP archive",
    b"\xd0\xcf\x11\xe0": "an old workbook",
    b"\x89HDF": "an HDF5 file",
}
NO_TABLES |= {b"SQLite": "a database", b"%PDF-": "a PDF"}
PAGE = re.compile(rb"(?i)[\xef\xbb\xbf\s]*<(!|\?xml|html|head|body|meta|table)")
"""Begin of HTML or XML."""
SQL = r"(?is)(?=(--|/\*|set|begin|create|insert|copy|drop|use|pragma)\s).*?\b"
TABLE = rf"{SQL}create table\W+(if not exists\W+)?(?P<TABLE>\w+)(?!.*(\bengine *=|\ncopy ))"
SPARSE = 'BEGIN {print "user,item,rating"} {for(k = 2; k <= NF; k++) {split($k, c, ":"); print NR "," c[1] "," c[2]}}'
WEKA = 'tolower($1) == "@attribute" {h = h s $2; s = ","} tolower($1) ~ /@data/ {d = 1; print h; next} d && !/^%/'
LOADED = "import json, yaml; print(json.dumps(yaml.safe_load(open('FILE', 'rb')), default=str))"
FOREIGN = (
    (TABLE, "SQL", "(cat 'FILE'; echo 'SELECT * FROM TABLE;') | sqlite3 -header -csv > NAME-table.csv"),
    (rf"{SQL}(insert into|create table|copy \S+ \()", "SQL", ""),
    (r"(---\n|#.*\n|\s)*- [\w\"' ]+:[ \n]", "YAML", f'python3 -c "{LOADED}" > NAME-table.json'),
    (r"[-+\d.]+( \d+:[-+.\deE]+)+ *\n", "LIBSVM", f"awk '{SPARSE}' 'FILE' > NAME-table.csv"),
    (r"(?i)(\s|%.*\n)*@relation\b", "ARFF", f"awk '{WEKA} {{gsub(/\\047/, \"\\\"\"); print}}' 'FILE' > NAME-table.csv"),
)
"""Begins of other forms, their names, and commands that make a table of a file."""
PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "Zstandard"}
"""First bytes of files."""
UTF_16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True, eq=False)
class Content:
    """Content of a file.

    Args:
        path: File.
        data: Its bytes: Parquet, or text in UTF-8 with a line feed at the end of each line.
    """

    path: Path
    data: bytes

    @property
    def is_parquet(self) -> bool:
        """True if the bytes are Parquet."""
        return self.data.startswith(PARQUET)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of text that are not blank, each with its one-based number."""
        for number, line in enumerate(io.BytesIO(self.data), start=1):
            if line.strip():
                yield number, line.decode().rstrip("\n")

    def below(self, line: int) -> "Content":
        """Return the content with so many lines at its begin blank.

        Raises:
            DataError: Nothing is left.
        """
        if not line:
            return self
        rest = self.data.split(b"\n", line)[line:]
        if not rest or rest[0].isspace() or not rest[0]:
            raise DataError(f"has no row below line {line}; say a smaller --skip-lines", self.path)
        return Content(self.path, b"\n" * line + rest[0])

    def first_line(self) -> str:
        """Return the first line that is not blank."""
        return next(self.lines())[1]


def plain_name(path: Path) -> str:
    """Return a file's name in lower case and without a suffix of compression."""
    name = path.name.lower()
    return name.removesuffix(next((suffix for suffix in PACKED if name.endswith(suffix)), ""))


def suffix_of(path: Path) -> str:
    """Return the suffix that names the form, in lower case: `.csv` of both `a.CSV` and `a.csv.gz`."""
    return Path(plain_name(path)).suffix


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes: `uk` of `uk.csv.gz`."""
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder, by name."""
    return [path for path in sorted(folder.iterdir()) if path.is_file()]


def tables_in(folder: Path, suffixes: Sequence[str] = TABLES) -> list[Path]:
    """Return the files of a folder that have one of these suffixes, by name."""
    return [path for path in files_in(folder) if suffix_of(path) in suffixes]


def find_tables(path: Path, suffixes: Sequence[str] = TABLES) -> list[Path]:
    """Return the file itself, or the tables of a folder by name.

    Raises:
        DataError: Nothing has this path, or the folder holds no table.
    """
    if not path.exists():
        raise DataError("no such file or folder; give a table, a folder of tables, or 'demo'", path)
    splits = [] if path.is_file() else split_files(path)
    tables = [path] if path.is_file() else [file for _, file in splits] or tables_in(path, suffixes)
    if not tables:
        raise DataError(f"the folder holds no table ({', '.join(suffixes)}); name a file in it", path)
    return tables


def load(path: Path, encoding: str = "", skip_lines: int = 0) -> Content:
    """Read a file of text, compressed or not, or of Parquet; its first bytes say which.

    Args:
        path: File.
        encoding: Encoding of text; empty for UTF-8, or UTF-16 with a byte-order mark.
        skip_lines: Lines above the header, which become blank, so that the other lines keep their numbers.

    Raises:
        DataError: It cannot be read, is empty, is neither, or has too long a line.
    """
    with reading(path), _opened(path) as file:
        rest = _chunks(path, file)
        first = next(rest, b"")
        page = "a page of HTML or XML" if PAGE.match(first) else ""
        if form := next((form for mark, form in NO_TABLES.items() if first.startswith(mark)), page):
            raise DataError(f"{form}, not text; save the table as CSV in UTF-8", path)
        if first.startswith(PARQUET):
            return Content(path, b"".join([first, *rest]))
        if suffix_of(path) == ".parquet":
            raise DataError("not Parquet, as its name says; is the file complete?", path)
        data = _text(path, chain([first], rest), encoding or UTF_16.get(first[:2], "utf-8-sig"))
    data = data.replace(b"\n\xef\xbb\xbf", b"\n")  # of files that were put together
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        is_wide, wide = 3 * data.count(b"\0") > len(data), "utf-16-be" if data.startswith(b"\0") else "utf-16-le"
        less = f"run tr -d '\\0' < '{path}' > '{path.stem}-text{path.suffix}'"
        remedy = f"save the file as UTF-8, or say --encoding {wide}" if is_wide else less
        raise DataError(f"NUL bytes are no text; {remedy}", path, line)
    if not data or data.isspace():
        raise DataError("the file is empty", path)
    _check_form(path, data[:CHUNK].decode(errors="ignore"))
    return Content(path, data).below(skip_lines)


def _check_form(path: Path, text: str) -> None:
    """Accept text in no form that another tool must convert.

    Raises:
        DataError: It is in one; with the command.
    """
    for begin, form, command in FOREIGN:
        if found := re.match(begin, text):
            remedy = command.replace("TABLE", found.groupdict().get("TABLE", "")).replace("NAME", stem_of(path))
            remedy = f"run {remedy.replace('FILE', str(path))}" if remedy else "save a table as CSV"
            raise DataError(f"{form}, not a table; {remedy}", path)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise errors of a file as `DataError`."""
    try:
        yield
    except gzip.BadGzipFile:
        raise DataError("cannot be read as gzip; compress it again, or drop .gz from its name", path) from None
    except (EOFError, zlib.error, lzma.LZMAError):
        packing = {".bz2": "bzip2", ".xz": "xz"}.get(path.suffix.lower(), "gzip")
        raise DataError(f"cannot be read as {packing}; is it complete?", path) from None
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a regular file, decompressed; nothing else is opened, since a pipe may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise DataError("not a file; name a table", path)
    with path.open("rb") as file:
        packing = next((name for mark, name in PACKINGS.items() if file.peek(6).startswith(mark)), "")
        if not packing and path.suffix.lower() != ".gz":
            yield file
            return
        with _UNPACKED.get(packing, gzip.open)(file) as unpacked:
            yield unpacked


_UNPACKED: dict[str, Callable[[Any], Any]] = {
    "bzip2": bz2.open,
    "xz": lzma.open,
    "Zstandard": imported("client.data.tables.text:unpack"),  # which takes 40 MB of memory
}


def _chunks(path: Path, file: Any) -> Iterator[bytes]:
    """Yield the bytes of a file.

    Raises:
        DataError: A compressed file expands too much.
    """
    packed = path.stat().st_size if not isinstance(file, io.BufferedReader) else 0
    most, total = min(max(EXPANSION * packed, EXPANSION_FREE), EXPANDED_LIMIT), 0
    while chunk := file.read(CHUNK):
        total += len(chunk)
        if packed and total > most:
            message = f"expands to more than {most:,} bytes from {packed:,}; give the table unpacked, or split it"
            raise DataError(message, path)
        yield chunk


def _text(path: Path, chunks: Iterator[bytes], charset: str) -> bytes:
    """Return text in UTF-8 with a line feed at the end of each line and no byte-order mark.

    Raises:
        DataError: A line is in another encoding, or too long.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(charset)(), translate=True)
    texts, length = list[bytes](), 0
    for chunk in chain(chunks, [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk).encode()
        except UnicodeDecodeError as error:
            line = 1 + sum(text.count(b"\n") for text in texts) + error.object.count(b"\n", 0, error.start)
            more = "" if charset == "cp1252" else ", or say --encoding cp1252, if Windows wrote it"
            named = "UTF-8" if charset in ("utf-8-sig", "utf-16") else charset
            raise DataError(f"not text in {named}; save the file as UTF-8{more}", path, line) from None
        end = text.find(b"\n")
        if length + (len(text) if end < 0 else end) > LINE_LIMIT:
            line = 1 + sum(text.count(b"\n") for text in texts)
            raise DataError(f"longer than {LINE_LIMIT:,} bytes; is this a table of text?", path, line)
        length = length + len(text) if end < 0 else len(text) - text.rindex(b"\n") - 1
        texts.append(text)
    return b"".join(texts)


def write_private_csv(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Scalar]]) -> None:
    """Write a CSV that only its owner may read, also in place of one that others could."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(rows)
