"""Refusals are counted, and reported once a minute for each class and caller."""

from prometheus_client.parser import text_string_to_metric_families

from common.refusals import CALLERS, METRIC, Refusals


def test_a_caller_has_one_line_a_minute_with_its_count() -> None:
    lines, now = list[str](), [100.0]
    refusals = Refusals(lines.append, lambda: now[0])
    for port in range(5):
        refusals.count("oversized reply", f"10.0.0.1:{port}", "ab12")
    refusals.count("oversized reply", "[::9]:7\n")
    refusals.count("unknown key")
    assert lines == [
        "refused: oversized reply (from 10.0.0.1:0, key ab12); 1 since the last line, 1 in all",
        "refused: oversized reply (from [::9]:7 ); 1 since the last line, 6 in all",
        "refused: unknown key; 1 since the last line, 1 in all",
    ]
    now[0] += 60
    refusals.report()
    assert lines[3:] == ["refused: oversized reply (from 10.0.0.1:4, key ab12); 4 since the last line, 6 in all"]
    now[0] += 60
    refusals.count("oversized reply", "[::9]:8")
    assert lines[4:] == ["refused: oversized reply (from [::9]:8); 1 since the last line, 7 in all"]


def test_callers_beyond_some_share_a_line_until_the_others_are_quiet() -> None:
    lines, now = list[str](), [100.0]
    refusals = Refusals(lines.append, lambda: now[0])
    for number in range(1000):
        refusals.count("unknown key", f"10.0.{number % 250}.1:9", f"key {number}")
    assert len(lines) == CALLERS + 1
    assert lines[-1] == f"refused: unknown key (further callers); 1 since the last line, {CALLERS + 1} in all"
    now[0] += 60
    refusals.report()
    assert lines[CALLERS + 1 :] == [
        f"refused: unknown key (further callers); {1000 - CALLERS - 1} since the last line, 1000 in all"
    ]
    refusals.count("unknown key", "10.1.1.1:1")
    assert lines[-1].startswith("refused: unknown key (from 10.1.1.1:1)")


def test_the_counts_are_read_by_prometheus() -> None:
    refusals = Refusals(lambda line: None)
    for kind in ("b", "a", "b"):
        refusals.count(kind)
    [family] = text_string_to_metric_families(refusals.to_text())
    assert {one.labels["class"]: one.value for one in family.samples if one.name == METRIC} == {"a": 1, "b": 2}
