"""The data of the ratings tables, whole: every user is a client."""

from dataclasses import dataclass
from pathlib import Path

from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.reader import read_raters
from common.options import Scalar


@dataclass(frozen=True)
class Setting:
    """One data set.

    Args:
        key: Short name, also of cached results.
        title: In the page.
        folder: Where it lies in the folder of all data sets.
        scale: How ratings become numbers in [0, 1], in words.
        tuned: Options of the default model chosen for this set alone by the exploration, which had seen its test ratings.
    """

    key: str
    title: str
    folder: str
    scale: str
    tuned: dict[str, Scalar]

    def read(self, data: Path) -> Ratings:
        """All its raters."""
        return read_raters(data / self.folder)


ALONE: dict[str, Scalar] = {"offset-weight": 0.0, "slope-noise": 1e9, "slope-weight": 200.0}
"""Undoes what the defaults add to the exploration's model."""

SETTINGS = (
    Setting("ml", "MovieLens 100K", "movielens-100k", "r/5", {"offset": 0.1, "slope": 0.035, **ALONE}),
    Setting("ft", "FilmTrust", "filmtrust", "(r − 0.5)/3.5", {"offset": 0.03, "slope": 0.018, **ALONE}),
)
