"""Demo sites that break: two in three, by faults that are known afterwards; the plain demo data stay."""

import numpy as np
import pytest

from client.data.dataset import split_variant
from client.data.read import demo_partition, read_all, read_partition
from client.tasks.traffic.data.generator import (
    END_OF_TRAINING,
    FAULTY,
    INTERRUPTED,
    KEPT_WEEKS,
    SOUND,
    WEEK,
    WRONG_SHARE,
    breaking_series,
    demo_series,
)
from client.tasks.traffic.data.series import split_series
from client.tasks.traffic.task import TASK
from common.errors import DataError
from common.tasks.traffic.options import TrafficOptions

SITES, BROKEN = demo_series(0, 6, 1), breaking_series(0, 6, 1)
PAST = np.arange(len(SITES[0].values)) < END_OF_TRAINING


def test_the_training_part_ends_where_the_faults_expect_it() -> None:
    assert split_series(SITES[0], TrafficOptions()).train_end == END_OF_TRAINING


@pytest.mark.parametrize("k", [SOUND, SOUND + 3])
def test_every_third_site_is_sound(k: int) -> None:
    np.testing.assert_array_equal(BROKEN[k].values, SITES[k].values)
    assert BROKEN[k].observed.all()


@pytest.mark.parametrize("k", [INTERRUPTED, INTERRUPTED + 3])
def test_an_interrupted_site_keeps_two_weeks_in_a_row_of_its_past(k: int) -> None:
    kept = np.flatnonzero(BROKEN[k].observed[PAST])
    assert len(kept) == kept[-1] - kept[0] + 1 == KEPT_WEEKS * WEEK
    assert BROKEN[k].observed[~PAST].all()
    seen = BROKEN[k].observed
    np.testing.assert_array_equal(BROKEN[k].values[seen], SITES[k].values[seen])
    assert not BROKEN[k].values[~seen].any()


@pytest.mark.parametrize("k", [FAULTY, FAULTY + 3])
def test_a_faulty_site_reads_too_much_now_and_then_after_its_training(k: int) -> None:
    wrong = ~BROKEN[k].observed
    assert not wrong[PAST].any()
    assert wrong[~PAST].mean() == pytest.approx(WRONG_SHARE, abs=0.03)
    assert (BROKEN[k].values[wrong] > SITES[k].values.max()).all()
    np.testing.assert_array_equal(BROKEN[k].values[~wrong], SITES[k].values[~wrong])


def test_a_site_depends_on_its_number_only() -> None:
    for whole, alone in zip(BROKEN[3:], breaking_series(3, 6, 1), strict=True):
        np.testing.assert_array_equal(whole.values, alone.values)
        np.testing.assert_array_equal(whole.observed, alone.observed)


def test_partitions_of_the_variant_are_ranges_of_it() -> None:
    assert demo_partition("traffic", "demo:breaking", (1, 2)) == f"demo:breaking:12-{TASK.demo_units}"
    whole = read_all("traffic", "demo:breaking:0-6", 1)
    assert [site.name for site in whole.units] == [site.name for site in SITES]
    part = read_partition("traffic", "demo:breaking:0-6", (1, 2), 1)
    np.testing.assert_array_equal(part.units[2].values, BROKEN[5].values)


@pytest.mark.parametrize(
    ("source", "variant"),
    [
        ("demo", ("", "demo")),
        ("demo:0-9", ("", "demo:0-9")),
        ("demo:breaking", ("breaking", "demo")),
        ("demo:breaking:0-9", ("breaking", "demo:0-9")),
        ("breaking:0-9", ("", "breaking:0-9")),
    ],
)
def test_a_variant_is_a_word_after_demo(source: str, variant: tuple[str, str]) -> None:
    assert split_variant(source) == variant


@pytest.mark.parametrize(
    ("task", "source"),
    [
        ("traffic", "demo:sleeping"),
        ("traffic", "demo:breaking:6"),
        ("traffic", "demo:breaking:"),
        ("rules", "demo:breaking"),
    ],
)
def test_an_unknown_variant_is_refused(task: str, source: str) -> None:
    with pytest.raises(DataError, match="invalid demo range"):
        read_all(task, source)
