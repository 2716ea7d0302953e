"""Coarser readings, checked by hand."""

import numpy as np
import pytest

from client.tasks.traffic.data.readings import Readings, adds_up, coarser, intervals, tidy

QUARTER = 900


def readings(site: list[int], time: list[int], values: list[float]) -> Readings:
    return Readings(
        np.array(site),
        np.array(time),
        np.array(values, float)[:, None],
        [f"s{k}" for k in range(max(site) + 1)],
        ("x",),
    )


def hours(rows: Readings, summed: bool, step: int = 60) -> list[tuple[int, int, float]]:
    """(site, hour, value)."""
    ordered = tidy(rows)
    each = intervals(ordered, len(rows.sites)).each
    out = coarser(ordered, each, 60 * step, np.array([summed]))
    return list(zip(out.site.tolist(), out.time.tolist(), out.values[:, 0].tolist(), strict=True))


def test_names_decide_what_adds_up() -> None:
    names = ("volume", "Traffic_Volume", "mean speed", "occupancy", "temperature", "co2", "noise", "counter")
    assert adds_up(names).tolist() == [True, True, False, False, False, True, False, False]


def test_a_step_that_lacks_some_readings_is_scaled_up_or_missing() -> None:
    """Hour 0 whole, hour 1 has 2 of 4, hour 2 has 1 of 4."""
    rows = readings([0] * 7, [QUARTER * k for k in (0, 1, 2, 3, 4, 6, 8)], [1, 2, 3, 4, 10, 20, 99])
    assert hours(rows, True)[:2] == [(0, 0, 10), (0, 1, 60)]
    assert np.isnan(hours(rows, True)[2][2])
    assert hours(rows, False)[:2] == [(0, 0, 2.5), (0, 1, 15)]
    ordered = tidy(rows)
    assert coarser(ordered, intervals(ordered, 1).each, 3600, np.array([True])).rescaled == 1


def test_readings_finer_than_usual_add_up() -> None:
    rows = readings([0] * 8, [3600 * k for k in range(4)] + [3600 * 4 + QUARTER * k for k in range(4)], [8.0] * 8)
    assert intervals(tidy(rows), 1).usual == 3600, "four differences of an hour and three of a quarter"
    assert hours(rows, True) == [(0, 0, 8), (0, 1, 8), (0, 2, 8), (0, 3, 8), (0, 4, 32)]
    assert hours(rows, False)[4] == (0, 4, 8)


def test_intervals_ignore_gaps_and_other_sites() -> None:
    rows = tidy(readings([1, 0, 1, 1, 2, 1], [0, 0, QUARTER, 9000, 5, 9900], [0.0] * 6))
    found = intervals(rows, 3)
    assert found.each.tolist() == [0, QUARTER, 0]
    assert found.usual == QUARTER
    assert intervals(tidy(readings([0], [5], [1.0])), 1).usual == 0


def spaced(times: np.ndarray) -> int:
    return intervals(tidy(readings([0] * len(times), times.tolist(), [1.0] * len(times))), 1).usual


@pytest.mark.parametrize("interval", [1, 900, 3600, 86400])
@pytest.mark.parametrize("missing", [0.0, 0.4, 0.6, 0.7])
def test_the_interval_is_that_of_the_rows_that_there_are_however_many_are_missing(
    interval: int, missing: float
) -> None:
    for seed in range(5):
        kept = np.random.default_rng(seed).random(1500) >= missing
        assert spaced(interval * np.flatnonzero(kept)) == interval


def test_twice_the_interval_may_by_chance_be_more_frequent() -> None:
    """An audit's sensor: 119 spacings of two hours, 108 of one."""
    apart = np.repeat([2, 1, 3, 4, 5], [119, 108, 70, 47, 27])
    assert spaced(3600 * np.concatenate([[0], np.cumsum(apart)])) == 3600


@pytest.mark.parametrize(("interval", "jitter"), [(900, 10), (3600, 60), (86400, 1800)])
@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_the_interval_of_a_clock_that_jitters(interval: int, jitter: int, missing: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        times = interval * np.arange(2000) + rng.integers(-jitter, jitter + 1, 2000)
        assert spaced(times[rng.random(2000) >= missing]) == interval


def test_of_one_interval_and_later_another_the_more_frequent_counts() -> None:
    for first, second in ((3600, 900), (900, 3600)):
        times = np.cumsum(np.repeat([first, second], [300, 200]))
        assert spaced(times) == first


def test_quarters_of_which_most_are_missing_are_quarters() -> None:
    """A step needs half of its four; by the median spacing they were halves of an hour and any two were taken for all."""
    kept = np.flatnonzero(np.random.default_rng(0).random(4000) < 0.4)
    found = hours(readings([0] * len(kept), (QUARTER * kept).tolist(), [5.0] * len(kept)), True)
    assert {value for _, _, value in found if not np.isnan(value)} == {20.0}
    assert [np.isnan(value) for *_, value in found] == (np.bincount(kept // 4)[np.unique(kept // 4)] < 2).tolist()


def test_tidying_counts_by_site() -> None:
    rows = tidy(readings([0, 1, 0, 1, 0, 0], [20, 10, 10, 20, 20, 30], [1, 2, 3, 4, 5, np.nan]))
    assert (rows.unordered, rows.group.tolist()) == (1, [1, 3, 0, 4, 1, 2])
    assert rows.site.tolist() == [0, 0, 0, 1, 1]
    assert rows.values[:4, 0].tolist()[:2] == [3, 3]
    assert np.isnan(rows.values[2, 0])


@pytest.mark.parametrize("summed", [True, False])
def test_against_loops(summed: bool) -> None:
    """Shuffled quarters of two sites, some twice, a tenth of them gone."""
    rng = np.random.default_rng(0)
    times = np.repeat(QUARTER * np.arange(400), 2)
    site = rng.permutation(np.tile([0, 1], 400))
    kept = rng.permutation(800)[:720]
    rows = readings(site[kept].tolist(), times[kept].tolist(), rng.random(720).tolist())

    seen: dict[tuple[int, int], list[float]] = {}
    for s, t, v in zip(rows.site.tolist(), rows.time.tolist(), rows.values[:, 0].tolist(), strict=True):
        seen.setdefault((s, t), []).append(v)
    usual = {
        s: np.sort(np.diff(sorted(t for k, t in seen if k == s)))[(sum(k == s for k, _ in seen) - 2) // 2]
        for s in (0, 1)
    }
    binned: dict[tuple[int, int], list[float]] = {}
    for (s, t), values in sorted(seen.items()):
        binned.setdefault((s, t // 3600), []).append(float(np.mean(values)))
    expected = []
    for (s, hour), values in binned.items():
        whole = 3600 / usual[s]
        value = np.mean(values) * (whole if summed else 1)
        expected.append((s, hour, value if 2 * len(values) >= whole else np.nan))
    np.testing.assert_allclose(hours(rows, summed), expected, rtol=1e-12)
