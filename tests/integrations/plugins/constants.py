"""How often a text that is the same in all rows was made, so that a test sees whether it came as one value."""

from collections import defaultdict

from arroyo_udf_plugin import udf

_seen: defaultdict[str, list[str]] = defaultdict(list)  # keeps the objects, so that no two have one identity


@udf
def made(text: str, word: str) -> int:
    """How many objects the calls with this word have had so far."""
    _seen[word].append(word)
    return len({id(object_) for object_ in _seen[word]})


@udf
def joined(text: str | None, word: str | None) -> str:
    return f"{text} {word}"
