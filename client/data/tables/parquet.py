"""Parquet as columns, in its own types."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow
import pyarrow.parquet

from client.data.tables.cells import Cells
from client.data.tables.formats import EXPANDED_LIMIT, Content
from common.errors import DataError

BATCH = 2**12
"""Rows decoded at a time."""


@dataclass(frozen=True, eq=False)
class Parquet(Cells):
    """Parquet, of which only the columns that are needed are decoded."""

    file: Any

    @classmethod
    def of(cls, content: Content) -> "Parquet":
        """Read the names of the columns.

        Raises:
            DataError: The file is damaged.
        """
        with _decoding(content):
            file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content.data))
            return cls(content, [name.strip() for name in file.schema_arrow.names], file)

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is damaged, or its columns exceed `EXPANDED_LIMIT` bytes.
        """
        with _decoding(self.content):
            names = [self.file.schema_arrow.names[place] for place in places]
            batches, size = list[Any](), 0
            for batch in self.file.iter_batches(BATCH, columns=names, use_threads=False):
                batches.append(batch)
                size += batch.nbytes
                if size > EXPANDED_LIMIT:
                    raise DataError(f"expands to more than {EXPANDED_LIMIT:,} bytes; split the file", self.content.path)
            schema = batches[0].schema if batches else self.file.schema_arrow
            table = pyarrow.Table.from_batches(batches, schema)
            table.validate(full=True)
            return [table.column(name).combine_chunks() for name in names]


@contextmanager
def _decoding(content: Content) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        message = f"cannot be read as Parquet ({type(error).__name__}); is the file complete?"
        raise DataError(message, content.path) from None
