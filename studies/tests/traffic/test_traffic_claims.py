"""Claims and tables of the traffic page follow from its numbers."""

from studies.harness.results import Results
from studies.harness.row import About, Row, RowKey, Trial
from studies.traffic.claims import verdicts
from studies.traffic.page import page
from tests.support.study_rows import measured, unseeded


def test_claims_are_checked_against_the_numbers() -> None:
    rows = {
        "baselines-paper": unseeded("paper", property_width=1.2),
        "baselines-calibrated": unseeded(
            "calibrated", property_width=1.0, truth_rho_trace=0.9, profile_mse=0.02, ridge_mse=0.02, mse=0.04
        ),
        "ridge": measured("ridge", mse=0.02, teacher_mse=0.02),
        "default": measured("default", mse=0.025, teacher_mse=0.025),
        "fedrep": measured("fedrep", mse=0.1, teacher_mse=0.09, rho_point=0.8),
        "fedrep-logic": measured("fedrep-logic", mse=0.11, teacher_mse=0.112, rho_point=0.85),
    }
    faults = {
        "sound": unseeded("sound", student=1.0, calibrated=1.0, weekday=1.0),
        "dead-6h": unseeded("dead-6h", "dead", student=1.0, calibrated=0.6, weekday=0.6),
    }
    cold = {"paper-5": unseeded("paper-5", "hourly, 5 days", pooled=0.7)}
    sentences = " ".join(verdicts("ten", rows, faults, cold))
    for claim in (
        "holds on 90.0% of the true windows (target 87% to 93%: holds). Its width is 1.00 against 1.20 of the paper's: holds",
        "at worst +1.82% (fedrep-logic), **does not hold**",
        "ρ point +5.0 points, MSE 0.1100 against 0.1000 (+10.0%), 1 seed",
        "MSE of the default at most 0.175: 0.0200, holds. The data are easier",
        "-50.0% to profile + federated ridge, -20.0% to the default model's network.",
        "30% less MSE under calibrated ranges: holds.",
        "50% less MSE under weekday ranges: **does not hold** (dead 40%)",
        "75% of days: **does not hold** (hourly, 5 days 70%)",
    ):
        assert claim in sentences
    assert "repaired" not in sentences
    assert "clusters" not in sentences  # those rows were not run


def test_repaired_histories_are_compared_with_sound_ones() -> None:
    def fault(key: str, student: float, repaired: float, z: float) -> Row:
        both = {"student": student, "student_property": repaired, "student_z": z}
        ridge = {"ridge": student, "ridge_property": repaired * 0.9, "ridge_z": z}
        return unseeded(key, key, calibrated=1.0, weekday=1.0, **both, **ridge)

    faults = {"sound": fault("sound", 1.0, 1.02, 1.01), "dead-6h": fault("dead-6h", 3.0, 1.1, 2.0)}
    sentences = " ".join(verdicts("ten", {}, faults, {}))
    assert "GRU, repaired by the property: at most 1.05 times the MSE on sound histories" in sentences
    assert (
        "**does not hold** (dead-6h 1.10). On sound histories +2.0%. Mean over faults 1.0600, by the z rule 1.5050."
        in sentences
    )
    assert (
        "ridge, repaired by the property: at most 1.05 times the MSE on sound histories, 1.2 for a scaled counter: holds."
        in sentences
    )


def test_rows_that_were_not_run_leave_no_section() -> None:
    def stored(protocol: str, key: str, seed: int = 0, **metrics: float) -> Row:
        return Row(RowKey("boroondara", protocol, key), About(key), {seed: Trial(metrics)})

    local = {"profile_mse": 3.0, "ridge_mse": 1.0, "mse": 2.0, "last_week_mse": 4.0}
    local |= {"truth_rho_trace": 0.9, "property_width": 1.0}
    rows = [
        stored("origin-0", "baselines-calibrated", -1, **local),
        stored("origin-0", "baselines-paper", -1, **local),
        stored("origin-0", "rnn-fedavg", mse=0.5, teacher_mse=0.5),
    ]
    first = "\n\n".join(page(Results({}, {row.key: row for row in rows}), "made"))
    assert "**rnn**" in first
    assert "**lstm**" not in first
    assert "| *baseline:* last week |  | 4.0000 |" in first
    assert "### Other origins" not in first
    rows += [stored("origin-0", "fedavg", mse=0.5, teacher_mse=0.5), stored("origin-1", "fedavg", mse=1.0)]
    second = "\n\n".join(page(Results({}, {row.key: row for row in rows}), "made"))
    assert "| method | as above | 3 days earlier | 6 days earlier | mean |" in second
    assert "| fedavg | 0.5000 | 1.0000 |  |  |" in second
