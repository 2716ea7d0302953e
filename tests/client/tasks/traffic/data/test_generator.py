"""The demo sites are roads."""

import numpy as np
import pytest

from client.tasks.traffic.data.generator import DAYS, HOURS, demo_series, street_series

SITES = demo_series(0, 24, seed=0)
VOLUMES = np.stack([one.values[:, 0] for one in SITES])
DAILY = VOLUMES.reshape(24, DAYS, 24)


def test_sixteen_weeks_of_whole_vehicles_from_a_monday() -> None:
    assert VOLUMES.shape == (24, 16 * 7 * 24) == (24, HOURS)
    assert (VOLUMES >= 0).all()
    assert (VOLUMES.round() == VOLUMES).all()
    begin = SITES[0].start.item()
    assert (begin.weekday(), begin.hour, begin.minute) == (0, 0, 0)
    assert all(one.observed.all() for one in SITES)


def test_a_site_depends_on_seed_and_number_only() -> None:
    again = demo_series(3, 9, seed=0)
    assert [one.name for one in again] == [one.name for one in SITES[3:9]]
    assert (np.stack([one.values[:, 0] for one in again]) == VOLUMES[3:9]).all()
    assert not (demo_series(3, 4, seed=1)[0].values[:, 0] == VOLUMES[3]).all()
    assert not (VOLUMES[0] == VOLUMES[3]).all()


def test_kinds_differ_by_hour_and_day() -> None:
    """Weekend against working days: freight rests, leisure does not; commuters have peaks at eight and five."""
    week = np.arange(DAYS) % 7
    ratio = DAILY[:, week >= 5].sum(axis=2).mean(axis=1) / DAILY[:, week < 5].sum(axis=2).mean(axis=1)
    assert ratio[0::3].max() < 0.95
    assert ratio[1::3].max() < 0.6
    assert ratio[2::3].min() > 1.2
    shape = DAILY[0::3][:, week < 5].mean(axis=1)
    assert (shape[:, 8] > shape[:, 11]).all()
    assert (shape[:, 17] > shape[:, 14]).all()


def test_all_sites_share_the_holidays() -> None:
    """On four working days commuter and freight roads carry much less than on the same weekday otherwise."""
    days = DAILY[np.arange(24) % 3 < 2].sum(axis=2).reshape(16, 16, 7)[:, :, :5]
    low = (days / np.median(days, axis=1, keepdims=True)).mean(axis=0)
    assert (low < 0.75).sum() == 4


def test_yesterdays_deviation_tells_of_todays() -> None:
    """Over the site's own median profile; the log ratio of whole days."""
    days = np.log(DAILY.sum(axis=2).reshape(24, 16, 7))
    deviation = (days - np.median(days, axis=1, keepdims=True)).reshape(24, DAYS).clip(-0.3, 0.3)
    lagged = [np.corrcoef(one[:-1], one[1:])[0, 1] for one in deviation]
    assert np.mean(lagged) == pytest.approx(0.5, abs=0.25)
    assert min(lagged) > 0.1


def test_the_weather_is_shared() -> None:
    days = np.log(DAILY[2::3].sum(axis=2).reshape(8, 16, 7))
    deviation = (days - np.median(days, axis=1, keepdims=True)).reshape(8, DAYS).clip(-0.3, 0.3)
    together = np.corrcoef(deviation)[np.triu_indices(8, 1)]
    assert together.mean() > 0.3


def test_streets_have_a_platoon_in_each_cycle_at_a_random_hour() -> None:
    sites, streets = demo_series(0, 2, 0), street_series(0, 2, 0)
    for site, street in zip(sites, streets, strict=True):
        usual, cycles = site.values.reshape(-1, 2), street.values.reshape(-1, 2)
        np.testing.assert_allclose(cycles.sum(1), usual.sum(1), atol=1)
        busy = usual.sum(1) > 100
        assert (cycles.max(1) / usual.sum(1))[busy] == pytest.approx(0.85, abs=0.01)
        assert cycles[busy].argmax(1).mean() == pytest.approx(0.5, abs=0.1)
    assert (street_series(1, 2, 0)[0].values == streets[1].values).all()
