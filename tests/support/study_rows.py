"""Rows of studies, made for tests of claims and pages."""

from collections.abc import Mapping

from studies.harness.row import NO_SEED, About, Metrics, Row, RowKey, Trial


def row(key: str, losses: Mapping[int, float], metric: str = "loss", title: str = "") -> Row:
    """Return a row with one metric a seed."""
    trials = {seed: Trial({metric: value}) for seed, value in losses.items()}
    return Row(RowKey("set", "default", key), About(title or key), trials)


def measured(key: str, title: str = "", **metrics: float) -> Row:
    """Return a row with several metrics on seed 0."""
    return Row(RowKey("set", "default", key), About(title or key), {0: Trial(metrics)})


def unseeded(key: str, title: str = "", **metrics: float) -> Row:
    """Return a row that belongs to a data set."""
    return Row(RowKey("set", "default", key), About(title or key), {NO_SEED: Trial(metrics)})


def by_client(key: str, *seeds: Mapping[str, Metrics]) -> Row:
    """Return a row with metrics per client, seed by seed."""
    trials = {seed: Trial(clients=dict(clients)) for seed, clients in enumerate(seeds)}
    return Row(RowKey("set", "default", key), About(key), trials)
