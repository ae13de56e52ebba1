"""The 24 scalar functions of UDFBench (athenarc/UDFBench), written anew from what its documents say of them.

As people would write them: some are arithmetic and texts, others need JSON, regular expressions or sorting.
"""

import json
import math
import random
import re
from datetime import date

from arroyo_udf_plugin import udf

RATES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "CHF": 1.05, "JPY": 0.0061}
STOPWORDS = frozenset({"a", "an", "and", "in", "is", "of", "on", "or", "the", "to", "with"})
PROJECT = re.compile(r"(?<![0-9])[0-9]{6}(?![0-9])")


def is_day(text: str) -> bool:
    """Whether a text is written YYYY-MM-DD or YYYY/MM/DD."""
    return len(text) == 10 and text[:4].isdigit() and text[5:7].isdigit() and text[8:].isdigit() and text[4] in "-/"


@udf
def addnoise(value: float) -> float:
    """Adds Gaussian noise, the same for the same value."""
    return value + random.Random(value).gauss(0, 1)


@udf
def clean(tokens: str) -> str:
    """Cleans the tokens of a list in JSON."""
    return json.dumps([token.strip().replace(".", "") for token in json.loads(tokens)])


@udf
def cleandate(text: str) -> str | None:
    """A date as YYYY-MM-DD; None if it is none."""
    text = text.strip()
    if not is_day(text):
        return None
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    if year < 1 or month < 1 or month > 12 or day < 1 or day > 31:
        return None
    return f"{date(year, month, day)}"


@udf
def converttoeuro(amount: float, currency: str) -> float | None:
    """An amount in euros; None in an unknown currency."""
    rate = RATES.get(currency.upper())
    return None if rate is None else round(amount * rate, 2)


@udf
def extractclass(funding: str) -> str:
    """The class in `funder::class::project`."""
    return funding.split("::")[1]


@udf
def extractcode(funding: str) -> str:
    """What follows the last `::`, without what is in brackets."""
    code = funding.split("::")[-1]
    return code[: code.find("(")].strip() if "(" in code else code.strip()


@udf
def extractday(text: str) -> int:
    return int(text[8:10])


@udf
def extractfunder(funding: str) -> str:
    return funding.split("::")[0]


@udf
def extractid(funding: str) -> str:
    return funding.split("::")[2]


@udf
def extractmonth(text: str) -> int:
    return int(text.split("-")[1])


@udf
def extractprojectid(text: str) -> str | None:
    """The first number of six digits."""
    found = PROJECT.search(text)
    return None if found is None else found.group()


@udf
def extractyear(text: str) -> int:
    return int(text[:4]) if text[:4].isdigit() else 0


@udf
def filterstopwords(text: str) -> str:
    return " ".join(word for word in text.split() if word.lower() not in STOPWORDS)


@udf
def frequentterms(text: str, percent: float) -> str:
    """The most frequent words, so many percent of all."""
    words = text.split()
    distinct = sorted(set(words), key=lambda word: (-words.count(word), word))
    return " ".join(distinct[: math.ceil(len(distinct) * percent / 100)])


@udf
def jaccard(one: str, other: str) -> float:
    """The Jaccard distance of two lists in JSON."""
    a, b = set(json.loads(one)), set(json.loads(other))
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


@udf
def jpack(text: str) -> str:
    return json.dumps(text.split())


@udf
def jsoncount(tokens: str) -> int:
    return len(json.loads(tokens))


@udf
def jsort(tokens: str) -> str:
    return json.dumps(sorted(json.loads(tokens)))


@udf
def jsortvalues(tokens: str) -> str:
    return json.dumps([" ".join(sorted(token.split())) for token in json.loads(tokens)])


@udf
def keywords(text: str) -> str:
    """The words without punctuation."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


@udf
def log_10(value: float) -> float:
    return math.log10(value) if value > 0 else 0.0


@udf
def lowerize(text: str) -> str:
    return text.lower()


@udf
def removeshortterms(tokens: str) -> str:
    return json.dumps([" ".join(one for one in token.split() if len(one) > 2) for token in json.loads(tokens)])


@udf
def stem(word: str) -> str:
    """A word without the commonest endings of English."""
    word = word.lower()
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ed", "es")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
