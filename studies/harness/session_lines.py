"""Generated sessions without users, one a line."""

from pathlib import Path

import numpy as np

LINE_ITEMS = 20_000
"""Number of items in generated sessions."""


def write_lines(path: Path, lines: int) -> Path:
    """Write sessions of 4.2 clicks on average as lines of item ids.

    Each item occurs once, and the rest follows Zipf's law.
    """
    rng = np.random.default_rng(0)
    lengths = np.minimum(1 + rng.geometric(1 / 3.23, lines), 20)
    popularity = 1 / np.arange(1, LINE_ITEMS + 1)
    once = np.arange(min(LINE_ITEMS, int(lengths.sum())))
    others = rng.choice(LINE_ITEMS, lengths.sum() - len(once), p=popularity / popularity.sum())
    clicks = rng.permutation(np.concatenate([once, others]))
    sessions = np.split(clicks, np.cumsum(lengths)[:-1])
    path.write_text("".join(" ".join(map(str, session)) + "\n" for session in sessions))
    return path
