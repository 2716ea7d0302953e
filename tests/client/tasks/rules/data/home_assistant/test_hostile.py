"""Hostile YAML: no file is opened, no object made, nothing expanded without limit."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.tasks.rules.data.home_assistant import document
from client.tasks.rules.data.home_assistant.document import Unread, load_yaml
from client.tasks.rules.data.reader import read_homes
from common.errors import DataError

RULE = (
    "- triggers: {trigger: sun, event: sunset}\n  actions: {action: light.turn_on, target: {entity_id: light.hall}}\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "automations.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    "value",
    [
        "!include /etc/passwd",
        "!secret password",
        "!input lamp",
        "!include_dir_list /",
        "!env_var HOME",
        "!!python/object/apply:os.system [touch pwned]",
        "!!python/name:os.system",
        "!<tag:elsewhere.org,2024:x> {a: 1}",
    ],
)
def test_a_tag_is_not_read_and_opens_nothing(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, f"{RULE}- triggers: {value}\n  actions: {value}\n")
    found: Any = load_yaml(path)[1]["triggers"]
    assert isinstance(found, Unread)
    reason = {"!inc": "!include of a file that is not in the folder", "!inp": "blueprint input without a value"}
    [note] = read_homes(tmp_path).notes
    assert note.startswith(
        "read 1 of 2 automations; 1 not: 1 " + reason.get(value[:4], "value of a tag such as !secret")
    )
    assert not any(word in note for word in ("passwd", "password", "HOME", "os.system"))
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: &a [1,1]\nb: &b [" + ",".join(["*a"] * 999) + "]\nc: [" + ",".join(["*b"] * 999) + "]\n",
            "line 3: more than",
        ),
        ("- &a [*a]\n", "line 1: an alias stands within its own anchor"),
        ("- &a {b: *a}\n", "line 1: an alias stands within its own anchor"),
        ("[" * 51 + "]" * 51, "line 1: more than 50 levels"),
        ("- {" * 100_000, "more than 50 levels|not YAML"),
        ("- " * 200_000 + "x", "more than 50 levels|not YAML"),
        ("[" + "a," * 200_001 + "]", "line 1: more than 200,000 values"),
        ("- a: 'open\n", "not YAML"),
        ("- *nowhere\n", "not YAML"),
        ("- a: 1\n b: 2\n", r"line 2: not YAML \(did not find expected '-' indicator\)"),
        ("? [a]\n: b\n", "line 1: not YAML .found unhashable key."),
        ("- !!int five\n", "not YAML"),
        ("- !!timestamp 2024-99-99\n", "not YAML"),
        ("\t- a\n", "line 1: not YAML"),
        ("%YAML 9.9\n---\n- a\n", "not YAML"),
        ("--- a\n--- b\n", "not YAML"),
    ],
)
def test_a_hostile_document_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=said) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 500


def test_a_long_file_and_other_encodings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, RULE)
    path.write_bytes(b"- a\n- \xff\xfe\n")
    with pytest.raises(DataError, match="line 2: not text in UTF-8"):
        load_yaml(path)
    monkeypatch.setattr(document, "MOST_BYTES", 10)
    write(tmp_path, RULE)
    with pytest.raises(DataError, match="longer than 10 bytes; split the file"):
        load_yaml(path)


def test_merge_keys_and_anchors_are_read_as_home_assistant_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path, "- &a {on: off, at: 07:30}\n- {<<: *a, b: ~}\n")
    assert load_yaml(path) == [{"on": "off", "at": "07:30"}, {"on": "off", "at": "07:30", "b": "~"}]


def test_a_product_of_many_triggers_and_actions_is_counted_not_built(tmp_path: Path) -> None:
    names = [f"light.l{k}" for k in range(200)]
    text = f"- triggers: {{trigger: state, entity_id: {names}}}\n"
    write(tmp_path, f"{RULE}{text}  actions: {{action: light.turn_on, target: {{entity_id: {names}}}}}\n")
    homes = read_homes(tmp_path)
    assert len(homes.units[0].rules) == 1
    assert homes.notes[0] == (
        "read 1 of 2 automations; 1 not: 1 automation with too many combinations (automations.yaml, line 3)"
    )


KEYS = (
    "triggers",
    "trigger",
    "platform",
    "actions",
    "action",
    "service",
    "entity_id",
    "target",
    "data",
    "to",
    "choose",
)
VALUES = ("state", "sun", "light.turn_on", "light.hall", "on", "device", "{{ x }}", "!secret x", "~", "", "zone")
TREES = st.recursive(
    st.sampled_from(VALUES) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(TREES | st.text(max_size=200))
def test_any_document_ends_in_homes_or_in_a_data_error(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / "automations.yaml").write_text(str([tree]) if not isinstance(tree, str) else tree, "utf-8")
    try:
        homes = read_homes(folder)
    except DataError:
        return
    assert len(homes.units) == 1
