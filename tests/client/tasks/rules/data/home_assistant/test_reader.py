"""Automations of Home Assistant as rules; all fixtures are written by hand."""

import shutil
from pathlib import Path

import pytest

from client.data.dataset import fingerprint
from client.tasks.rules.data.home_assistant.reader import is_home_assistant
from client.tasks.rules.data.homes import Home, Homes
from client.tasks.rules.data.reader import read_homes
from common.errors import DataError, VocabularyError
from common.tasks.rules.vocabulary import RuleCatalogue

HERE = Path(__file__).parent


def rules(homes: Homes, home: Home) -> set[tuple[str, str, str]]:
    """Return the rules of a home as (trigger device, relation, action device)."""
    names = [device.name for device in home.devices]
    return {(names[u], homes.vocabulary.relations[r], names[v]) for u, v, r in home.rules.tolist()}


def read(name: str) -> tuple[set[tuple[str, str, str]], Homes]:
    homes = read_homes(HERE / name)
    return rules(homes, homes.units[0]), homes


def test_the_new_spelling_is_read_with_registries_branches_and_loops() -> None:
    found, homes = read("new")
    assert found == {
        ("binary_sensor.front_door", "opens → turn on", "light.hall"),
        ("binary_sensor.front_door", "opens → turn on", "light.porch"),
        ("sun.sun", "sets → close", "cover.living"),
        ("sensor.outside", "rises above a value → turn on", "fan.bath"),
        ("sensor.outside", "rises above a value → turn off", "light.hall"),
        ("sensor.outside", "rises above a value → turn on", "siren.hall"),
        ("person.someone", "comes home → turn on", "fan.bath"),
        ("person.someone", "comes home → turn off", "light.hall"),
        ("person.someone", "comes home → turn on", "siren.hall"),
        ("binary_sensor.stairs", "detects motion → turn on", "light.porch"),
    }
    assert homes.notes[0] == "read 4 of 4 automations"
    types = {device.name: homes.vocabulary.entities[device.entity] for device in homes.units[0].devices}
    assert (types["cover.living"], types["sensor.outside"]) == ("Blind", "Temperature sensor")
    assert types["lock.front"] == "Door lock", "a device of the registry without a rule"
    assert not {"light.cellar", "sensor.uptime"} & types.keys(), "disabled, or of no class"


def test_the_old_spelling_is_read_and_on_is_no_boolean() -> None:
    found, _ = read("old")
    assert found == {
        ("binary_sensor.garden", "turns on → turn on", "switch.pump"),
        ("binary_sensor.garage", "turns on → turn on", "switch.pump"),
        ("light.hall", "turns off → turn off", "media_player.kitchen"),
        ("clock.clock", "reaches a time → turn off", "media_player.kitchen"),
        ("clock.clock", "ticks → turn off", "media_player.kitchen"),
        ("person.someone", "leaves home → turn off", "media_player.kitchen"),
    }


def test_what_is_not_read_is_counted_by_reason_with_the_first_place() -> None:
    found, homes = read("mixed")
    assert found == {
        ("binary_sensor.hall", "turns on → turn on", "light.hall"),
        ("sun.sun", "sets → turn on", "light.hall"),
    }
    assert homes.notes == (
        "read 1 of 5 automations; 4 not: "
        "1 blueprint without its file (automations.yaml, line 2, 'By blueprint'); "
        "1 trigger of another kind (automations.yaml, line 28, 'Other kinds'); "
        "1 automation without a device that it acts on (automations.yaml, line 48, 'Acts on nothing'); "
        "1 malformed part (automations.yaml, line 1)",
        "left out of those read: 1 condition on more than the trigger (first: automations.yaml, line 14); "
        "1 notification (first: automations.yaml, line 17); "
        "2 scenes or scripts that are not in the configuration (first: automations.yaml, line 19); "
        "1 service outside the public table (first: automations.yaml, line 21); "
        "1 template (first: automations.yaml, line 22); "
        "1 value of a tag such as !secret (first: automations.yaml, line 24)",
    )


def test_nothing_but_types_states_and_actions_enters_the_vocabulary() -> None:
    homes = read_homes(HERE)
    assert [home.name for home in homes.units] == ["mixed", "new", "old"]
    text = homes.vocabulary.to_json()
    assert not any(word in text for word in ("hall", "Grandmother", "secret", "garden", "mobile", "living", "new"))


def test_a_home_may_have_a_folder_of_automations_or_be_one_file(tmp_path: Path) -> None:
    inner = tmp_path / "home" / "automations" / "rooms"
    inner.mkdir(parents=True)
    shutil.copy(HERE / "old" / "automations.yaml", inner / "a.yaml")
    (tmp_path / "home" / "automations" / "empty.yml").write_text("")
    (tmp_path / "notes").mkdir()
    expected, _ = read("old")
    for source in (tmp_path, tmp_path / "home", inner / "a.yaml"):
        homes = read_homes(source)
        assert rules(homes, homes.units[0]) == expected
    assert [home.name for home in read_homes(tmp_path).units] == ["home"]
    assert not is_home_assistant(tmp_path / "notes")


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "automations").mkdir()
    (tmp_path / "automations" / "a.yaml").symlink_to(HERE / "old" / "automations.yaml")
    assert not is_home_assistant(tmp_path)


def test_a_catalogue_must_express_a_rule_or_a_device() -> None:
    with pytest.raises(VocabularyError, match=r"no row can be used: .*rows? skipped: the vocabulary lacks"):
        read_homes(HERE / "old", RuleCatalogue(entities=("Anvil",), relations=()))


def test_automations_without_a_device_are_refused_with_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "automations.yaml"
    path.write_text("- triggers: {trigger: mqtt}\n  actions: [{delay: 5}]\n")
    with pytest.raises(DataError, match=r"no device in the automations \(read 0 of 1 automation; 1 not: 1 trigger of"):
        read_homes(tmp_path)


def test_a_registry_that_is_none_is_refused(tmp_path: Path) -> None:
    shutil.copytree(HERE / "new", tmp_path / "home")
    registry = tmp_path / "home" / ".storage" / "core.entity_registry"
    for text in ("", "[]", '{"data": 5}', '{"data": {"entities": {}}}', '{"data": {"entities": [5]}}', "[" * 100_000):
        registry.write_text(text)
        with pytest.raises(DataError, match=r"not a registry with a list data\.entities"):
            read_homes(tmp_path / "home")


def test_client_state_follows_the_content_of_automations_and_registries(tmp_path: Path) -> None:
    shutil.copytree(HERE / "new", tmp_path / "homes" / "a")
    seen = {fingerprint(str(tmp_path / "homes"), (0, 1), 0)}
    for name in ("automations.yaml", ".storage/core.entity_registry", "packages/rooms/hall.yaml"):
        path = tmp_path / "homes" / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + "\n")
        seen.add(fingerprint(str(tmp_path / "homes"), (0, 1), 0))
    assert len(seen) == 4


def test_client_state_does_not_follow_logs_and_secrets_of_a_live_folder(tmp_path: Path) -> None:
    shutil.copytree(HERE / "new", tmp_path / "a")
    seen = set()
    for name in ("configuration.yaml", "home-assistant_v2.db", "secrets.yaml", "automations.yaml"):
        (tmp_path / "a" / name).write_text("x\n")
        seen.add(fingerprint(str(tmp_path / "a"), (0, 1), 0))
    assert len(seen) == 2
