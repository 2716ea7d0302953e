"""The RecRules form: channels, the two setups of explore-rules.md §1 on the real data, bad input."""

import gzip
from pathlib import Path

import pytest

from client.tasks.rules.data.reader import Setup, channels, is_recrules, read_homes, read_recrules, split_channel
from common.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight users with one rule each, another rule of one user, in the three sets."""
    rules = "1\ttrigger_sms_any;action_email_send_me\n2\ttrigger_email_digest_new;action_wemo_switch_turn_on\n"
    (tmp_path / "rules").write_text(rules)
    (tmp_path / "trainset").write_text("".join(f"{user}\t1\t5.0\n" for user in range(7)))
    (tmp_path / "validationset").write_text("7\t1\t5.0\n")
    with gzip.open(tmp_path / "testset.gz", "wt") as file:
        file.write("7\t2\t1.0\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "channel", "rest"),
    [
        ("email_send_me_an_email", "email", "send_me_an_email"),
        ("email_digest_add_to_daily_digest", "email_digest", "add_to_daily_digest"),
        ("facebook_any_new_post_by_you_in_area", "facebook", "any_new_post_by_you_in_area"),
        ("facebook_pages_create_a_link_post", "facebook_pages", "create_a_link_post"),
        ("nest_thermostat_nest_set_to_away", "nest_thermostat", "nest_set_to_away"),
        ("date_time_every_day_at", "date_time", "every_day_at"),
        ("ge_appliances_cooking_cooking_timer_done", "ge_appliances_cooking", "cooking_timer_done"),
        ("wemo_light_switch_long_press", "wemo_light_switch", "long_press"),
        ("wemo_lighting_light_switched_off", "wemo_lighting", "light_switched_off"),
        ("ifttt_new_ifttt_update", "ifttt", "new_ifttt_update"),
        ("if_notifications_send_a_notification", "if_notifications", "send_a_notification"),
        ("phone_call_call_my_phone", "phone_call", "call_my_phone"),
        ("launch_center_trigger", "launch_center", "trigger"),
        ("boxcar_2_send_a_notification", "boxcar_2", "send_a_notification"),
        ("is_it_christmas_is_it_christmas", "is_it_christmas", "is_it_christmas"),
    ],
)
def test_the_longest_channel_is_cut_off(name: str, channel: str, rest: str) -> None:
    assert split_channel(name) == (channel, rest)


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(ValueError, match="'toaster_pops' begins with no known channel"):
        split_channel("toaster_pops")


def test_rare_pairs_are_left_out(folder: Path) -> None:
    assert is_recrules(folder)
    rows = read_recrules(folder)
    assert (list(rows.relations), len(rows.relation)) == (["any → send_me"], 8)


def test_every_name_of_the_real_set_has_a_channel_and_every_channel_a_name(recrules: Path) -> None:
    with gzip.open(recrules / "rules.gz", "rt", encoding="utf-8") as file:
        sides = [side for line in file for side in line.rstrip("\n").split("\t")[1].split(";")]
    names = {side.removeprefix("trigger_").removeprefix("action_") for side in sides}
    assert len(names) == 735
    assert len(channels()) == 178
    assert {split_channel(name)[0] for name in names} == channels()


@pytest.mark.parametrize(
    ("setup", "entities", "relations", "users", "rules", "larger", "their_rules"),
    [("A", 53, 139, 130, 3722, 125, 3717), ("B", 150, 103, 151, 6832, 143, 6824)],
)
def test_the_real_set_has_the_figures_of_the_exploration(
    recrules: Path, setup: Setup, entities: int, relations: int, users: int, rules: int, larger: int, their_rules: int
) -> None:
    dataset = read_homes(recrules, setup=setup)
    assert (len(dataset.vocabulary.entities), len(dataset.vocabulary.relations)) == (entities, relations)
    assert (len(dataset.units), sum(len(home.rules) for home in dataset.units)) == (users, rules)
    kept = [home for home in dataset.units if len(home.devices) > 2]
    assert (len(kept), sum(len(home.rules) for home in kept)) == (larger, their_rules)
    assert dataset.notes == ()


def test_a_missing_set_is_named(folder: Path) -> None:
    (folder / "trainset").unlink()
    assert not is_recrules(folder)
    with pytest.raises(DataError, match=r"'trainset' or 'trainset\.gz' is missing"):
        read_recrules(folder)


def test_a_set_that_is_no_text_is_named(folder: Path) -> None:
    (folder / "trainset").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="trainset, line 1: not text in UTF-8"):
        read_recrules(folder)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("validationset", "7\t1\n", "line 1: 2 tab-separated cells, expected 3"),
        ("validationset", "7\t9\t1.0\n", "line 1: rule 9 is not in the file 'rules'"),
        ("rules", "1\ttrigger_toaster_pops;action_sms_send\n", "line 1: 'toaster_pops' begins with no known channel"),
    ],
)
def test_malformed_lines_are_named(folder: Path, name: str, text: str, complaint: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=complaint):
        read_recrules(folder)
