"""F11: functions as people write them, the scalar ones of UDFBench: which are native; they do what Python does."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from comparing import Pair
from random_functions import FLOATS, ORDINARY, TEXTS

HERE = Path(__file__).parent
N = 10_000
IN_PYTHON = {
    "addnoise": "the call of `random.Random`",
    "clean": "the call of `json.dumps`",
    "extractprojectid": "the call of `PROJECT.search`",
    "filterstopwords": "`(word for word in text.split()",
    "frequentterms": "the call of `.split`",
    "jaccard": "the call of `set`",
    "jpack": "the call of `json.dumps`",
    "jsoncount": "the call of `json.loads`",
    "jsort": "the call of `json.dumps`",
    "jsortvalues": "the call of `json.dumps`",
    "keywords": "the call of `re.findall`",
    "removeshortterms": "the call of `json.dumps`",
}
"""Of the corpus, and why."""
FUNDINGS = [
    "EC::H2020::654321",
    "NSF::CISE::1 (2019)",
    "::",
    "EC::",
    "EC:::FP7::1",
    "wt::a::b::c (d)",
    "\u00c9C::H::12",
]
DAYS = ["2024-02-29", "2023-02-29", "2023/12/31", " 1999-01-01 ", "0000-00-00", "2024-13-01", "20240101", "2024-1-1"]
DAYS += ["\u0662024-01-01", "9999-12-31", "2024-04-31"]
WORDS = ["running", "flies", "boxes", "ted", "glass", "cars", "ING", "\u00fcbers", "usd", "EUR", "Chf"]
LISTS = ['["b", "a"]', '["x y z.", "the"]', "[]", "no", '["\\u00e9 a"]']


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    source = (HERE / "corpus.py").read_text().replace("@udf\n", '@udf(native="auto")\n')
    return Pair(tmp_path_factory.mktemp("corpus"), source)


def column(choices: random.Random, type_: pa.DataType) -> pa.Array:
    texts = [*TEXTS, *ORDINARY, *FUNDINGS * 4, *DAYS * 4, *WORDS * 4, *LISTS * 4]
    makers: dict[pa.DataType, Callable[[], object]] = {
        pa.utf8(): lambda: choices.choice(texts),
        pa.float64(): lambda: choices.choice(FLOATS) if choices.random() < 0.3 else choices.uniform(-10, 1000),
    }
    return pa.array([None if choices.random() < 0.03 else makers[type_]() for _ in range(N)], type_)


def test_half_of_the_corpus_is_native(corpus: Pair) -> None:
    reasons = {name: function.not_native for name, function in corpus.native.items() if not function.native}
    assert sorted(reasons) == sorted(IN_PYTHON)
    assert (len(corpus.native), len(reasons)) == (24, 12)


@pytest.mark.parametrize("name", [*IN_PYTHON])
def test_why_a_function_is_not_native(corpus: Pair, name: str) -> None:
    assert IN_PYTHON[name] in str(corpus.native[name].not_native)


def test_native_functions_of_the_corpus_do_what_python_does(corpus: Pair) -> None:
    choices = random.Random(24)
    for name, function in corpus.native.items():
        if function.native:
            corpus.check(name, *(column(choices, argument.type) for argument in function.arguments))
