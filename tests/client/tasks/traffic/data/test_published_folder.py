"""Which folders are one data set."""

import pytest

from client.tasks.traffic.data.series import is_published
from tests.support.files import Writer, folder_of


@pytest.mark.parametrize(
    "name", ["OriginalDataset.csv.gz", "volume_data.csv", "TX_JAN_2019 (TMAS).VOL", "stateDaily_18.csv"]
)
def test_a_published_file_makes_the_folder_one_set(text: Writer, name: str) -> None:
    folder = text("x", name=f"set/{name}").parent
    assert is_published(folder)


def test_clients_tables_are_not_one_set(text: Writer) -> None:
    folder = text("x", name="set/client-1.csv").parent
    assert not is_published(folder)


@pytest.mark.parametrize(
    "name",
    ["vicroads-scats-boroondara-2006", "vicroads-scats-10sites", "metro-interstate-i94", "fhwa-state-daily"],
)
def test_the_real_sets_are_known(name: str) -> None:
    assert is_published(folder_of(name))
