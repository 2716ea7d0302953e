"""What each client of a federation on this machine is given."""

from pathlib import Path

import numpy as np

from client.data.parts import Part, read_all, vocabulary
from client.data.sessions.visitors import Dataset
from client.data.sources import with_test
from deploy.sources import parts_of, share_out


def held_out(part: Part) -> list[tuple[str, list[list[int]]]]:
    """Each visitor's test cases, the clicks so far and the next."""
    assert isinstance(part, Dataset)
    return [(v.name, [[*np.append(case.prefix, case.target)] for case in v.test]) for v in part.visitors]


def test_each_client_gets_its_share_of_the_sessions_held_out(tmp_path: Path) -> None:
    (tmp_path / "clicks.txt").write_text("a b\nb a\n" * 40)  # 80 sessions of nobody's: four groups
    (tmp_path / "held-out.txt").write_text("a b\nb a b\na b a\n")
    source = with_test("sessions", str(tmp_path / "clicks.txt"), str(tmp_path / "held-out.txt"))
    whole = read_all("sessions", source)
    parts = parts_of("sessions", source, None, 2)
    dealt = [visitor for part in parts for visitor in held_out(part)]
    assert sorted(dealt) == sorted(held_out(whole))
    assert sum(len(test) for _, test in dealt) == 5

    specs = share_out("sessions", source, parts, tmp_path / "home", tmp_path / "dealt")
    theirs = [read_all("sessions", spec.data, known=vocabulary(whole)) for spec in specs]
    assert [held_out(part) for part in theirs] == [held_out(part) for part in parts]
