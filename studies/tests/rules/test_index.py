"""The index of results states of counts in sums what the stored rows say."""

from studies.harness.study import RESULTS, Study
from studies.rules.claims import SUM_TARGETS, compare_rows
from studies.rules.experiments import CLEAR, EXACT, NOISED, SUMMED, UNKNOWN

INDEX = " ".join((RESULTS / "index.md").read_text("utf-8").split())
RULES = Study("rules").results()


def test_sums_without_noise_are_equal() -> None:
    rows = RULES.rows_of("A")
    found = [compare_rows(rows[SUMMED], rows[CLEAR], metric) for metric in ("hr20", "mr0")]
    assert {(one.seeds, *one.differences) for one in found} == {(5, *[0.0] * 5)}
    assert (
        "the server sees no home's counts or update, and the model is the same: HR@20 and MR are equal in five" in INDEX
    )


def test_counts_with_noise_are_compared_with_none() -> None:
    rows = RULES.rows_of("A")
    gains = compare_rows(rows[NOISED], rows["default-fedrule"], "hr20")
    assert (gains.seeds, min(gains.differences) > 0) == (5, True)
    noised, none = (f"{rows[key].mean('hr20'):.0%}".replace("%", " %") for key in (NOISED, "default-fedrule"))
    assert (
        f"at ε = 8 on the counts alone, HR@20 is {noised}. It is {none} without counts, and lower in each of five"
        in INDEX
    )


def test_counts_of_embedded_homes_are_compared_with_exact_ones() -> None:
    rows = RULES.rows_of("demo", "sums")
    assert SUM_TARGETS == ((2_000, 2.0), (8_000, 2.0))

    def share(homes: int, kind: str) -> str:
        return f"{rows[f'{homes}-{kind}'].mean('hr20') / rows[f'{homes}-{EXACT}'].mean('hr20'):.0%}".replace("%", " %")

    assert (
        f"at ε = 2, counts of 2,000 embedded homes reach {share(2_000, '2')} of the HR@20 of exact ones. Those of 8,000 reach"
        f" {share(8_000, '2')}. Where the vocabulary states no abilities of devices, it is {share(2_000, f'2{UNKNOWN}')} and"
        f" {share(8_000, f'2{UNKNOWN}')}."
    ) in INDEX
