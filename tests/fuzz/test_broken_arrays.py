"""Plugins in three languages under hosts that pass broken arrays, options and handles. broken_arrays.py can do so for
longer; its cases in corpus/ have each shown a crash or a wrong answer."""

from pathlib import Path

import broken_arrays
import pytest

from arroyo_udf_plugin import build

pytestmark = pytest.mark.once

SECONDS = 4  # for each language


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("broken_arrays")
    return {language: broken_arrays.built(language, folder) for language in broken_arrays.LANGUAGES}


@pytest.mark.parametrize("language", broken_arrays.LANGUAGES)
def test_arrays_that_have_crashed_a_plugin_or_gave_wrong_answers(plugins: dict[str, Path], language: str) -> None:
    """F4: a row that cannot be read is an error. An array that does not fit its type is refused."""
    cases = broken_arrays.corpus(language)
    found = broken_arrays.replayed(plugins[language], cases)
    assert {case["why"]: text for case, text in zip(cases, found, strict=True) if text != "passed"} == {}


@pytest.mark.parametrize("language", broken_arrays.LANGUAGES)
def test_plugins_survive_broken_arrays_options_and_handles(
    plugins: dict[str, Path], tmp_path: Path, language: str
) -> None:
    assert broken_arrays.fuzzed(plugins[language], tmp_path, 0, SECONDS) == ""


def test_wrong_answers_and_crashes_are_seen(tmp_path: Path) -> None:
    """One function cuts its texts, another reads beyond them. Cases after a crash are judged."""
    text = (broken_arrays.HERE / "functions.c").read_text()
    for right, wrong in [
        ("x.data, x.length);", "x.data, x.length / 2);"),
        ("x.value.data, x.value.length);", "x.value.data, x.value.length + 4096);"),
    ]:
        assert right in text
        text = text.replace(right, wrong, 1)
    (tmp_path / "wrong.c").write_text(text)
    plugin = build(tmp_path / "wrong.c", tmp_path / "wrong.so")
    unaligned = [case for case in broken_arrays.corpus("c") if "offsets that are not aligned" in case["why"]]
    names = ["same_nullable_utf8", "same_utf8", "async_same_utf8"]
    cases = [next(case for case in unaligned if case["function"] == name) for name in names]
    crash, wrong, right = broken_arrays.replayed(plugin, cases)
    assert "ended with -11" in crash
    assert "ended with 1: row 0 is {'value': 'a'}, not 'ab'" in wrong
    assert right == "passed"
