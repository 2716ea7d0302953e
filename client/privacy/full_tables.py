"""Full tables in place of gathered rows, in runs whose noise or masks cover every row."""

from dataclasses import dataclass, replace

from client.privacy.transforms import Update, Work
from common.arrays import Arrays, add_prefix, group
from common.wire.sparse_rows import expand


@dataclass(frozen=True)
class FullTables:
    """Select step: restore whole tables from gathered rows; other rows are zero.

    Args:
        model: The shared model, with whole tables.
    """

    model: Arrays

    def __call__(self, work: Work) -> Work:
        """Return work whose update has whole tables and names no rows."""

        def whole() -> Update:
            update = work()
            tables = add_prefix("update", expand(group("update", update.arrays), self.model))
            others = {n: a for n, a in update.arrays.items() if not n.startswith("update/")}
            return replace(update, arrays={**tables, **others})

        return whole
