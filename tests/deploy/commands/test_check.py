"""`fedloom check` on files as newcomers have them: each gets its sentence."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.errors import DataError, NothingYetError
from deploy.cli.app import app

RULES = "user_id,trigger_device,trigger_device_id,trigger_state,action,action_device,action_device_id"
RULE = "ann,Contact sensor,door,opens,turn on,Light,hall"


def check(folder: Path, text: str, *words: str, task: str = "ratings") -> Result:
    """Check a table of this text, in `folder`."""
    path = folder / "a.csv"
    path.write_text(text, "utf-8")
    return CliRunner().invoke(app, ["check", str(path), "--task", task, *words])


def refusal(folder: Path, text: str, *words: str, task: str = "ratings") -> str:
    """Return the error about a table, without its path."""
    error = check(folder, text, *words, task=task).exception
    assert isinstance(error, DataError)
    return str(error).removeprefix(f"{folder / 'a.csv'}, ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "user,item,rating,date\nann,tea,4,45292\nbob,tea,3,45293\n",
            "line 2, column 'date': '45292' looks like an Excel date, 2024-01-01 (2 of 2 cells); say --dates excel, "
            "or --dates unix for seconds since 1970",
        ),
        (
            'user,item,rating\nann,tea,"1,234"\n',
            "line 2, column 'rating': '1,234' has a decimal comma or a thousands separator (1 of 1 cell); "
            "say --decimal comma or --decimal point",
        ),
        (
            "user,item,rating,date\nann,tea,4,03/04/2024\n",
            "line 2, column 'date': '03/04/2024' may begin with the day or the month (1 of 1 cell); "
            "say --dates dmy or --dates mdy",
        ),
        (
            "USER,ITEM,RATING\nann,tea,4\nbob,rum,N/A\n",
            "line 3, column 'RATING': 'N/A' stands for a missing value (1 of 2 cells); "
            "give every row a user, an item and a rating, or leave it out, or say --drop-empty RATING",
        ),
        (
            "usr,item,rating\nann,tea,4\n",
            "line 1, column 'user': no column 'user'; 'usr' is near: rename it, or say --column user=usr",
        ),
        (
            "user,item,rating,date\nann,tea,4,2024-01-01\nann,rum,4,2200-01-01\n",
            "line 3, column 'date': '2200-01-01' lies outside the years 1990 to 2100 (1 of 2 cells); "
            "correct it, or leave the cell empty",
        ),
        ("user,item,rating\nann,t\0a,4\n", "line 2: NUL bytes are no text; run tr -d '\\0' < '{file}' > 'a-text.csv'"),
    ],
)
def test_a_newcomers_file_is_refused_with_what_to_do(text: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text) == said.format(file=tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("user;item;rating\nann;tea;4,5\n", (), "  column 'rating': decimal comma ('4,5' is 4.5)"),
        (
            "user,item,rating,date\nann,tea,4,45292\n",
            ("--dates", "excel"),
            "  column 'date': Excel dates ('45292' is 2024-01-01)",
        ),
        (
            "user,item,rating,date\nann,tea,4,25/12/2024\n",
            (),
            "  column 'date': day before month ('25/12/2024' is 2024-12-25)",
        ),
        ("KUNDE,ITEM,RATING\nann,tea,4\n", ("--column", "user=Kunde"), "  column 'KUNDE' is user"),
        ("user,item,rating,shop,note\nann,tea,4,x,y\n", (), "  not read: 'shop', 'note'"),
        ("user,item,rating\nann,tea,4\n,,\n", (), "  1 row without any text skipped; the first: line 3"),
        (
            "user,item,rating\nann,tea,4\nbob,tea,3\nann,tea,5\n",
            (),
            "  1 rating replaced by a later one of the same person and product; the first: line 2",
        ),
        ("user,item,rating,date\nann,tea,4,2024-01-01\n", (), "1 rater, 1 item; 2024-01-01 to 2024-01-01"),
        (
            "user,item,rating\nann,tea,4\n",
            ("--clients", "1"),
            "  client-0 (1 rater): 1 rating to train on, 0 for the test",
        ),
    ],
)
def test_a_newcomers_file_is_read_with_its_sentence(
    text: str, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = check(tmp_path, text, *words)
    assert done.exception is None, done.output
    assert said in done.output.splitlines()


def test_one_rule_is_read_and_its_home_has_no_rule_for_the_test(tmp_path: Path) -> None:
    lines = check(tmp_path, f"{RULES}\n{RULE}\n{RULE}\n", task="rules").output.splitlines()
    assert "  1 duplicate rule dropped; the first: line 3" in lines
    assert "1 home, 2 devices, 2 device types, 1 trigger-action pair" in lines
    assert "A client with the median home (1 rule) trains on 1 rule and holds out 0 for the test." in lines
    assert "No home has rules for the test." in lines


def test_a_catalogue_is_written_and_read_again(tmp_path: Path) -> None:
    catalogue = tmp_path / "names.json"
    check(tmp_path, f"{RULES}\n{RULE}\n", "--catalogue", str(catalogue), task="rules")
    found = json.loads(catalogue.read_text("utf-8"))
    assert (found["entities"], found["relations"]) == (["Contact sensor", "Light"], ["opens → turn on"])
    assert "ann" not in catalogue.read_text("utf-8")


def test_data_that_nobody_can_train_on_end_in_an_error_after_the_report(tmp_path: Path) -> None:
    done = check(tmp_path, f"{RULES}\nann,Contact sensor,door,,,,\n", "--json", task="rules")
    assert isinstance(done.exception, NothingYetError)
    assert "no home of 1 has rules to train on; add rules (" in str(done.exception)
    assert json.loads(done.output)["learning"]["trainable"] == 0


def test_no_row_is_printed(tmp_path: Path) -> None:
    text = "user,item,rating,date\nann smith,tea of Ceylon,4,31/05/2024\n"
    for words in ((), ("--json",)):
        output = check(tmp_path, text, *words).output
        assert "ann smith" not in output
        assert "Ceylon" not in output
