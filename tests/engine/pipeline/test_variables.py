"""${NAME}: one error for all that are missing; no value is ever shown."""

from __future__ import annotations

import pickle

import pytest

from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline, Problem
from arroyo_udf_plugin.engine.pipeline.variables import resolved


def test_values_stand_for_names_in_any_text() -> None:
    data = {"a": "${HOST}:${PORT}", "b": ["x", ("${HOST}",)], "c": {"d": 1, "e": None}}
    values, _ = resolved(data, {"HOST": "here", "PORT": "80"})
    assert values == {"a": "here:80", "b": ["x", ("here",)], "c": {"d": 1, "e": None}}
    assert data["a"] == "${HOST}:${PORT}"


def test_two_dollars_are_the_text_itself() -> None:
    values, secrets = resolved({"a": "$${HOST} $HOST {HOST}"}, {})
    assert values == {"a": "${HOST} $HOST {HOST}"}
    assert not secrets


def test_all_missing_variables_are_one_error() -> None:
    with pytest.raises(InvalidPipeline) as error:
        resolved({"a": "${ONE}", "b": [{"c": "${TWO} ${THREE} ${TWO}"}], "d": "${HOME}"}, {"HOME": "x"})
    assert [str(problem) for problem in error.value.problems] == [
        "a: the environment variable ONE is not set: export ONE=...",
        "b[0].c: the environment variable TWO is not set: export TWO=...",
        "b[0].c: the environment variable THREE is not set: export THREE=...",
    ]


def test_a_name_that_is_none_says_what_to_write() -> None:
    with pytest.raises(InvalidPipeline, match=r"a: \$\{A-B\} names no variable: write \$\{NAME\}, or \$\$\{A-B\} for"):
        resolved({"a": "${A-B}"}, {})


def test_errors_do_not_show_values() -> None:
    _, secrets = resolved({"url": "db://me:${PASSWORD}@${HOST}"}, {"PASSWORD": "it's\\secret", "HOST": "db"})
    assert secrets.hidden("db://me:it's\\secret@db: refused") == "db://me:${PASSWORD}@${HOST}: refused"
    assert secrets.hidden("no " + repr("it's\\secret") + " there") == 'no "${PASSWORD}" there'
    assert secrets.hidden("a password of it's\\secret") == "a password of ${PASSWORD}"


def test_a_short_value_garbles_no_word() -> None:
    texts = {"a": "${OUT}", "b": "${DB}", "c": "${IN}/x", "d": "${EMPTY}"}
    _, secrets = resolved(texts, {"OUT": "o", "DB": "begin", "IN": "in", "EMPTY": ""})
    told = "names begin within a word of 'o', or o in inbegin: 'beginning'"
    assert secrets.hidden(told) == "names ${DB} within a word of '${OUT}', or o in inbegin: 'beginning'"
    assert secrets.hidden("o") == "${OUT}"
    assert secrets.hidden("in/x/1.csv") == "${IN}/x/1.csv"
    assert secrets.hidden("db://begin@o/begin") == "db://${DB}@${OUT}/${DB}"


def test_the_longest_value_is_hidden_first() -> None:
    _, secrets = resolved({"a": "${SHORT}", "b": "${LONG}"}, {"SHORT": "secret", "LONG": "secret-and-more"})
    assert secrets.hidden("secret-and-more, secret") == "${LONG}, ${SHORT}"


def test_what_was_hidden_can_be_used_again() -> None:
    _, secrets = resolved({"path": "${FOLDER}/in"}, {"FOLDER": "/data/mine"})
    hidden = secrets.hidden("/data/mine/in/a.csv")
    assert hidden == "${FOLDER}/in/a.csv"
    assert secrets.shown(hidden) == "/data/mine/in/a.csv"
    assert secrets.shown("${OTHER}") == "${OTHER}"


def test_problems_can_be_pickled() -> None:
    error = InvalidPipeline([Problem(("a", 0), "is wrong")], "p.toml", {("a",): 3})
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems) == ("p.toml:3: a[0]: is wrong", error.problems)
