"""Claims of the rules page follow from its numbers."""

from studies.rules.claims import against_counts, compare_rows, comparisons, findings, targets
from tests.support.study_rows import measured

METRICS = {"loss": 0.05, "auc": 0.9, "mr0": 2.0, "hr20": 0.5, "filtered_hr20": 0.6}


def test_a_missed_target_is_stated() -> None:
    row = measured("default-fedrule", "ours", loss=0.05, mr0=2.0, hr20=0.5)
    assert targets({"default-fedrule": row}).rows == [
        ("ours", "loss ≤ 0.08", "0.050", "holds"),
        ("ours", "MR ≤ 1", "2.000", "**does not hold**"),
        ("ours", "HR@20 ≥ 0.4", "0.500", "holds"),
    ]


def test_a_metric_has_its_direction() -> None:
    first, second = measured("a", loss=0.1, auc=0.8), measured("b", loss=0.2, auc=0.9)
    assert (compare_rows(first, second, "loss").won, compare_rows(first, second, "auc").won) == (1, 0)


def test_a_finding_names_method_metric_value_reference_and_seeds() -> None:
    rows = {
        "fedrule-adam": measured("fedrule-adam", "FedRule", **METRICS),
        "fedgnn-adam": measured("fedgnn-adam", "FedGNN", **METRICS, **{"connected_loss": 1.0}),
    }
    [sentence] = findings(rows)
    assert sentence.startswith("FedRule against FedGNN: lower loss in 0 of 1 seed (0.050 against 0.050); higher AUC")
    assert len(comparisons(rows, [("fedrule-adam", "fedgnn-adam"), ("fedrule-adam", "absent")]).rows) == 1


def test_a_contender_is_compared_with_the_best_count_baseline() -> None:
    rows = {
        "fedrule-adam": measured("fedrule-adam", "FedRule", **METRICS),
        "counts-sides": measured("counts-sides", **{**METRICS, "loss": 0.1, "auc": 0.95}),
        "counts-triple": measured("counts-triple", **{**METRICS, "loss": 0.06, "auc": 0.8}),
    }
    [sentence] = against_counts(rows)
    assert "loss 0.050 **is better than** 0.060" in sentence
    assert "AUC 0.900 is not better than 0.950" in sentence
