"""Exports of services and odd tables: read as they are, or refused with a command that works."""

import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from client.data.read import read_all
from client.data.tables.schema import Dialect
from common.errors import DataError

HOURS = [datetime(2024, 1, 1) + timedelta(hours=k) for k in range(30)]
QUERY = "#group,false\n#datatype,string\n,result,table,_start,_stop,_time,_value,_field\n"


def dialect(words: str) -> Dialect:
    """Return the dialect of options of a command."""
    pairs, of = shlex.split(words.replace("--wide", "")), defaultdict[str, list[str]](list)
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        of[name[2:].replace("-", "_")].append(value)
    dates = of.pop("dates", ["auto"])[0]
    return Dialect.of(of.pop("column", []), dates=dates, wide="--wide" in words, **of)


def values(task: str, path: Path, words: str) -> dict[str, Any]:
    """Return the ratings, sessions or first readings of each unit by names, and the ratings of a market."""
    data = read_all(task, str(path), dialect=dialect(words))
    items = data.vocabulary.variables if task == "traffic" else data.vocabulary.items
    of: dict[str, Any] = {
        "ratings": lambda one: {items[k]: value for k, value in zip(one.items, one.ratings.tolist(), strict=True)},
        "sessions": lambda one: [[items[k] for k in session] for session in one.sessions],
        "traffic": lambda one: dict(zip(items, one.values[:3].T.tolist(), strict=True)),
        "markets": lambda one: [[items[k] for k in pair] for pair in one.pairs] or [items[k] for _, k in one.ratings],
    }
    return {unit.name: of[task](unit) for unit in data.units}


def series(row: str) -> str:
    return "".join(row.format(one, 7 * k) + "\n" for k, one in enumerate(HOURS))


READINGS = [0.0, 7.0, 14.0]
CASES: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("ratings", "user,Dune,Heat,Average,Total\nann,1,3,2,4\nbob,5,,5,5\nAverage,3,3,3,\n", "", "--wide",
     {"ann": {"Dune": 1, "Heat": 3}, "bob": {"Dune": 5}}),
    ("ratings", "item,ann,bob\nDune,1,5\n", "", "--wide", {"ann": {"Dune": 1}, "bob": {"Dune": 5}}),
    ("ratings", "UserID::MovieID::Rating\nann::Dune::5\n", "", "", {"ann": {"Dune": 5}}),
    ("ratings", "user^item^rating\nann^Dune^5\n", "", "", {"ann": {"Dune": 5}}),
    ("ratings", 'user,item,rating\nann,"a \\"b\\", c",3½\n', "", "", {"ann": {'a "b", c': 3.5}}),
    ("ratings", json.dumps({"ann": {"Dune": 1, "Up": 2, "Heat": 3}}), "", "--wide", {"ann": {"Dune": 1, "Up": 2, "Heat": 3}}),
    ("ratings", '{"user": {"$oid": "a"}, "item": "x", "rating": {"$numberInt": "4"}, "time": {"$date": "2020-01-01"}}\n' * 2,
     "", "", {"a": {"x": 4}}),
    ("ratings", "Title,Author,My Rating,Date Read,Exclusive Shelf\nEmma,Austen,4,2023/01/05,read\nUlysses,Joyce,0,,to-read\n"
     "It,King,5,,read\n", "refused", '--column user=filename --column item=Title+Author --column rating="My Rating" --column '
     'timestamp="Date Read" --missing 0 --drop-empty "My Rating"', {"a": {"Emma, Austen": 4, "It, King": 5}}),
    ("ratings", "Date,Name,Year,Letterboxd URI,Rating\n2023-01-01,Dune,1984,x,2.5\n2023-01-02,Dune,2021,y,4\n", "refused",
     "--column user=filename --column item=Name+Year --column rating=Rating --drop-empty Rating",
     {"a": {"Dune, 1984": 2.5, "Dune, 2021": 4}}),
    ("sessions", "session,item\ns,a|b\nt,c|a\n", "refused", "--column items=item", {"group-00001": [["a", "b"], ["c", "a"]]}),
    ("sessions", "user,timestamp,items\nu,2024-01-02,a;b c\nu,2024-01-01,b c;a\n", "", "", {"u": [["b c", "a"], ["a", "b c"]]}),
    ("markets", "user,item\nu,a;b\nv,b;a\n", "refused", "--column items=item", {"a": ["a", "b", "a", "b"]}),
    ("markets", "item_a,item_b\na,b|c\nc,b|a\n", "refused", "--column items=item_b",
     {"a": [["a", "b"], ["a", "c"], ["b", "c"]]}),
    ("sessions", "Name,Email,Created at,Lineitem name\n#1,ann,2024-01-01,Mug\n#1,,2024-01-01,Pot\n#2,bob,2024-01-02,Pot\n"
     "#2,,2024-01-02,Pan\n", "refused", '--column user=Email --column item="Lineitem name" --column timestamp="Created at" '
     "--column session=Name --missing above", {"ann": [["Mug", "Pot"]], "bob": [["Pot", "Pan"]]}),
    ("sessions", "# ---\n# Shop, GA4\n# ---\nPage path and screen class,Client ID,Time\n/a,u,2024-01-01\n/b,u,2024-01-01\n",
     "refused", '--column user="Client ID" --column item="Page path and screen class"', {"u": [["/a", "/b"]]}),
    ("traffic", "time,s1,Mean,hour\n" + series("{0},{1},9,{1}"), "", "--wide", {"s1": {"value": READINGS}}),
    ("traffic", QUERY + series(",,0,x,y,{0},{1},temp"), "", "", {"a": {"_value": READINGS}}),
    ("traffic", QUERY + series(",,0,x,y,{0},{1},temp") + "\n" + QUERY + series(",,1,x,y,{0},9,wind"), "refused",
     '--where "_field=temp"', {"a": {"_value": READINGS}}),
    ("traffic", "entity_id,state,last_changed\n" + series("s,{1},{0:%Y-%m-%dT%H:%M:%S.1Z}") + "s,unavailable,2024-01-03\n",
     "", "", {"s": {"state": READINGS}}),
    ("traffic", "statistic_id,unit,start,mean\n" + series("s,W,{0},{1}") + series("t,W,{0},9"), "refused",
     "--column timestamp=start --column site=statistic_id", {"s": {"mean": READINGS}, "t": {"mean": [9.0, 9.0, 9.0]}}),
    ("traffic", series("{0:%m/%d/%Y %H:%M:%S},400001,4,101,N,ML,{1}"), "refused",
     "--column timestamp=column1 --column site=column2 --dates mdy",
     {"400001": {"column3": [4.0] * 3, "column4": [101.0] * 3, "column7": READINGS}}),
    ("traffic", "sensor_id;lat;location;timestamp;P1\n" + series("92;48.5;7;{0};{1}.0"), "", "", {"92": {"P1": READINGS}}),
    ("traffic", "site,2024-01-01,2024-01-02,2024-01-03\ns,0,7,14\n", "", "", {"s": {"value": READINGS}}),
    ("traffic", "point,way,day,hour,flow\n" + "".join(series(f"{p},{w},{{0:%Y-%m-%d}} 00:00:00,{{0.hour}},{{1}}") for p in "ab"
     for w in "NS"), "", "--column timestamp=day+hour --column site=point+way",
     {f"{p}, {w}": {"flow": READINGS} for p in "ab" for w in "NS"}),
    ("ratings", "user,item,rating\nann,Dune,good\nann,Up,bad\nbob,Up,ok\n", "refused",
     '--missing "bad=1" --missing "ok=2" --missing "good=3"', {"ann": {"Dune": 3, "Up": 1}, "bob": {"Up": 2}}),
    ("ratings", "user,item,rating\nann,Dune,'4\nann,Up,(3.5)\nbob,Up,5 - best\nbob,Dune,2.5-\n", "refused",
     """--missing "'4=4" --missing "(3.5)=-3.5" --missing "5 - best=5" --missing "2.5-=-2.5\"""",
     {"ann": {"Dune": 4, "Up": -3.5}, "bob": {"Up": 5, "Dune": -2.5}}),
    ("ratings", "user,item,rating\nann,Dune,yes\nann,Up,perhaps\nbob,Up,sure\n", "--missing \"yes=NUMBER\"",
     '--missing yes=1 --missing perhaps=2 --missing sure=1', {"ann": {"Dune": 1, "Up": 2}, "bob": {"Up": 1}}),
    ("ratings", "user,age,sex,Dune,Heat,Up\nann,34,f,1,3,2\nbob,51,m,5,,4\ncat,19,f,,2,2\n", "--wide",
     "--wide --ignore age", {"ann": {"Dune": 1, "Heat": 3, "Up": 2}, "bob": {"Dune": 5, "Up": 4}, "cat": {"Heat": 2, "Up": 2}}),
    ("ratings", "user,item,rating\n" + "".join(f"a,{k},{0 if k % 3 else 4}\n" for k in range(9)), "refused",
     "--missing 0 --drop-empty rating", {"a": {"0": 4, "3": 4, "6": 4}}),
    ("ratings", "".join(f"ann,{k},{1260759144 + k},{k}\n" for k in range(1, 4)), "--column rating=TITLE, such as column4",
     "--column user=column1 --column item=column2 --column rating=column4", {"ann": {"1": 1, "2": 2, "3": 3}}),
    ("ratings", "user,item,rating\nann,Dune,4\n\ufeffuser,item,rating\nann,Total,4\n=\"bob\",=\"Up\",=\"5\"\n", "", "",
     {"ann": {"Dune": 4}, "bob": {"Up": 5}}),
    ("ratings", "user,item,rating\nann,Dune,4\n,Up,2\nbob,Up,1\n,Heat,2\n", "--missing above", "--missing above",
     {"ann": {"Dune": 4, "Up": 2}, "bob": {"Up": 1, "Heat": 2}}),
    ("ratings", "user,name,year,rating\nann,Dune,1984,4\nann,,,2\n", "refused: no column 'item'",
     "--column item=name+year --drop-empty item", {"ann": {"Dune, 1984": 4}}),
    ("sessions", '"green tea",milk\nwhole milk\njam,"green tea"\n', "run mv", "", {}),
    ("sessions", "item 1,item 2\ntea,milk\njam,\nmilk,jam\n", '--column items="item 1+item 2"',
     '--column items="item 1+item 2" --column user=filename', {"a": [["tea", "milk"], ["milk", "jam"]]}),
    ("sessions", '{"id": 7, "who": "u", "lines": [{"title": "tea"}, {"title": "jam"}]}\n' * 2, "",
     "--column session=id --column item=title --column user=who", {"u": [["tea", "jam", "tea", "jam"]]}),
    ("traffic", "time,v\n" + "".join(f"{k:02}:00,{7 * k}\n" for k in range(24)), "refused",
     '--column timestamp="filename+time"', {"2024-03-01": {"v": READINGS}}),
    ("traffic", "TIMESTAMP,RECORD,v\nTS,RN,m3\n,,Avg\n" + series("{0},{1},{1}"), "", "",
     {"a": {"RECORD": READINGS, "v": READINGS}}),
    ("traffic", "Province,Country,1/22/20,1/23/20,1/24/20\n,Italy,0,7,14\nHubei,China,0,7,14\n", "refused",
     '--column site="Province+Country"', {"Italy": {"value": READINGS}, "Hubei, China": {"value": READINGS}}),
    ("traffic", "fecha;v\n" + series("lunes, {0.day} de enero de {0.year} {0:%H}h{0:%M};{1}"), "", "--column timestamp=fecha",
     {"a": {"v": READINGS}}),
    ("traffic", "week,Mon,Tue,Wed\n2024-W01,1,2,3\n", "save a row for each day", "", {}),
    ("markets", "asin,buyer\nA,u\nB,u\nA,v\nB,v\n", "--column user=TITLE", "--column user=buyer", {"a": ["A", "B", "A", "B"]}),
]  # fmt: skip
FORMS = {
    "sql": "CREATE TABLE IF NOT EXISTS r (user TEXT, item TEXT, rating REAL);\nINSERT INTO r VALUES ('ann','Dune',4);\n",
    "yaml": "- user: ann\n  item: Dune\n  rating: 4\n",
    "libsvm": "4 3:4\n5 3:2 7:1\n",
    "arff": "%\n@relation r\n@attribute user string\n@attribute item string\n@attribute rating real\n@data\nann,'Dune',4\n",
    "csv": "user,item,rating\nann,Dune,4\n\0\0",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_command_of_a_refusal_makes_a_table(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"a.{form}"
    path.write_text(FORMS[form])
    with pytest.raises(DataError) as caught:
        read_all("ratings", str(path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    command = str(caught.value).partition("run ")[2]
    if form != "sql" or which("sqlite3"):
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
        [table] = set(tmp_path.iterdir()) - {path}
        found = values("ratings", table, "")
        assert found == ({"1": {"3": 4}, "2": {"3": 2, "7": 1}} if form == "libsvm" else {"ann": {"Dune": 4}})


@pytest.mark.parametrize(("task", "text", "is_refused", "words", "expected"), CASES)
def test_exports(task: str, text: str, is_refused: str, words: str, expected: dict[str, Any], tmp_path: Path) -> None:
    name = "2024-03-01" if "filename+" in words else "a"
    path = tmp_path / f"{name}.{'json' if text.startswith('{') else 'csv'}"
    path.write_text(text)
    if is_refused:
        with pytest.raises(DataError) as caught:
            read_all(task, str(path))
        assert (f"say {words}" if is_refused == "refused" else is_refused.removeprefix("refused: ")) in str(
            caught.value
        )
    assert not expected or values(task, path, words) == expected
