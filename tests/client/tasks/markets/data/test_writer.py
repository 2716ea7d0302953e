"""What is written is read back the same."""

from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from client.tasks.markets.data.markets import Markets, write_markets
from client.tasks.markets.data.reader import read_markets


@pytest.mark.parametrize("source", ["demo:3-6", "pairs"])
def test_markets_survive_the_file(source: str, tmp_path: Path) -> None:
    listed = tmp_path / "uk.csv"
    listed.write_text("item_a,item_b\nx,y\nz,x\n")
    given = read_markets(listed) if source == "pairs" else read_all("markets", source)
    path = tmp_path / "own" / "market.csv"
    path.parent.mkdir()
    write_markets(path, given)
    same(read_markets(path, given.vocabulary), given)


def same(ours: Markets, theirs: Markets) -> None:
    assert ours.vocabulary == theirs.vocabulary
    for one, other in zip(sorted(ours.units, key=by_name), sorted(theirs.units, key=by_name), strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.ratings, other.ratings)
        np.testing.assert_array_equal(one.pairs, other.pairs)


def by_name(market: object) -> str:
    return str(vars(market)["name"])
