"""What is written is read back the same."""

from pathlib import Path

from client.tasks.markets.data.markets import write_markets
from client.tasks.markets.data.reader import read_markets
from tests.support.digests import digest


def test_lists_of_pairs_survive_the_file(tmp_path: Path) -> None:
    listed = tmp_path / "uk.csv"
    listed.write_text("item_a,item_b\nx,y\nz,x\n")
    given = read_markets(listed)
    path = tmp_path / "own" / "market.csv"
    path.parent.mkdir()
    write_markets(path, given)
    assert digest(read_markets(path, given.vocabulary)) == digest(given)
