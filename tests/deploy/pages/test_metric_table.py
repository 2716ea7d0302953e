"""Vocabulary, order and formats of the metrics."""

import math

import pytest

from deploy.pages.view import brief, curve, folded, format_value, headlines, in_order, measure

RULES = ("hr40", "hr5", "loss", "mr1", "auc", "hr20", "mr_rt", "mr0", "hr10")


def test_order_is_that_of_the_table_and_cut_offs_count_as_numbers() -> None:
    assert [m.key for m in in_order(RULES)] == ["loss", "auc", "mr0", "mr1", "mr_rt", "hr5", "hr10", "hr20", "hr40"]


def test_headlines_represent_their_cut_offs() -> None:
    assert [m.key for m in headlines(RULES)] == ["loss", "auc", "mr0", "hr20"]
    assert [m.key for m in headlines(["mrr20", "mrr10", "hr10", "hr20", "ndcg20"])] == ["hr20", "mrr20", "ndcg20"]


@pytest.mark.parametrize(
    ("key", "label", "better"),
    [
        ("hr20", "Hit rate @20", "higher"),
        ("mr0", "Mean rank", "lower"),
        ("f1", "F1", "higher"),
        ("cluster_mse", "Mean squared error, cluster model", "lower"),
        ("teacher_rho_trace", "Rule satisfaction, traces, teacher", "higher"),
        ("global_mse", "Mean squared error, shared model", "lower"),
        ("cluster_teacher_mse", "Mean squared error, teacher, cluster model", "lower"),
        ("truth_rho_trace", "Rule satisfaction, traces, the truth itself", ""),
        ("profile_mse", "Mean squared error of the profile", "lower"),
        ("property_width", "Width of the property", ""),
        ("rmse_local_mean", "RMSE of own mean", "lower"),
        ("rmse_prior_mean", "RMSE of the public prior mean", "lower"),
        ("lipschitz_bound", "Lipschitz bound", ""),
        ("depth3", "Depth3", ""),
    ],
)
def test_labels(key: str, label: str, better: str) -> None:
    assert (measure(key).key, measure(key).label, measure(key).better) == (key, label, better)


def test_unknown_metrics_come_last() -> None:
    assert [m.key for m in in_order(["zeta", "cluster_mse", "alpha", "mse"])] == ["mse", "cluster_mse", "alpha", "zeta"]


FORECASTS = ("loss", "mse", "teacher_mse", "profile_mse", "last_week_mse", "rho_point", "rho_window", "rho_trace")
CLUSTERS = ("cluster_loss", "cluster_mse", "cluster_teacher_mse", "cluster_rho_trace")
TRUTH = ("truth_rho_point", "truth_rho_window", "truth_rho_trace", "teacher_rho_trace", "property_width")


def test_a_forecaster_s_many_metrics_are_cut_for_short_tables() -> None:
    shown = "mse cluster_mse teacher_mse profile_mse last_week_mse rho_point rho_trace truth_rho_trace property_width"
    assert [m.key for m in brief((*TRUTH, *CLUSTERS, *FORECASTS), "traffic")] == shown.split()
    assert brief(RULES, "rules") == in_order(RULES)


def test_a_forecaster_s_line_has_error_before_and_after_projection_and_satisfaction() -> None:
    assert [m.key for m in headlines((*TRUTH, *CLUSTERS, *FORECASTS))] == ["loss", "mse", "teacher_mse", "rho_trace"]


def test_values_as_text() -> None:
    assert format_value(measure("auc"), 0.98449) == "0.984"
    assert format_value(measure("mr0"), 3.149) == "3.15"
    assert format_value(measure("loss"), math.nan) == "–"
    assert format_value(measure("loss"), None) == "–"
    assert format_value(measure("mse"), 1234567.0) == "1.23e+06"


def test_curve_of_cut_offs() -> None:
    assert curve({"hr40": 0.5, "hr5": 0.1, "hr_any": 1.0, "auc": 0.9}) == {5: 0.1, 40: 0.5}


def test_cards_show_at_most_five_metrics_without_near_duplicates() -> None:
    keys, first = ("loss", "auc", "mr0", "mr1", "mr_rt", "hr5", "hr10", "hr20", "hr40", "hr20_frequency"), "hr20_shown"
    assert [m.key for m in folded(in_order(keys))] == ["loss", "auc", "mr0", "hr20"]
    assert [m.key for m in folded(in_order([*keys, first]), first)] == [first, "loss", "auc", "mr0"]
    assert len(folded(in_order([f"other{name}" for name in "abcdefgh"]))) == 5
