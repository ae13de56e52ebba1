"""Calls of native functions in a text of SQL, and the operators ->, ->> and ?, as calls that DataFusion can make.

    a -> 'b' ->> 0                     json_as_text_1(a)        a function with the path ('b', 0)
    json_get_int(a, 'b') > 5           json_get_int_1(a) > 5
    (a -> 'b')::bigint                 (json_get_int_1(a))::bigint
    a -> b                             json_get_1(a, b)         each row has its own step
    mean(x), of a plugin               "mean of"(array_agg(x))  see aggregates.py

DataFusion has no such functions, and takes none with any number of arguments. Operators bind as in PostgreSQL and in
Arroyo: tighter than comparisons, looser than arithmetic. Where this would surprise, brackets are asked for.

Assumes: the text is right otherwise. DataFusion says where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.json_values import BY_KEYS, BY_PATH, JsonFunction
from .aggregates import ListFunction
from .columns import MultiHash
from .tokens import Token, quoted, tokens

Tokens = Sequence[Token]

_OPERATORS = {"->": "json_get", "->>": "json_as_text", "?": "json_contains"}
_ALIASES = {"json_len": "json_length", "json_keys": "json_object_keys"}
NAMES = frozenset({*BY_KEYS, *BY_PATH, *_ALIASES, "multi_hash"})
# What json_get becomes below a cast: a value of another type is null there, and no error.
_CASTS = {
    **dict.fromkeys(("boolean", "bool"), "json_get_bool"),
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint", "int2", "int4", "int8"), "json_get_int"),
    **dict.fromkeys(("float", "real", "double", "decimal", "numeric", "float4", "float8"), "json_get_float"),
}
_TIGHT = {"+", "-", "*", "/", "%", "^", "#", "&", "|", "~", "!", "@", "<<", ">>", "["}  # tighter, or as tight
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
# Words before a bracket that are no functions.
_NO_FUNCTIONS = {
    *("and", "or", "not", "in", "is", "like", "ilike", "between", "when", "then", "else", "case", "where", "select"),
    *("from", "as", "any", "all", "some", "on", "by", "over", "distinct", "exists"),
}
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_PREFIXES = {"interval", "date", "timestamp", "time"}  # of a literal
NO_AGGREGATES: Mapping[str, ListFunction] = {}


class WrongCall(InvalidArgument):
    """at: the offset in the text."""

    def __init__(self, text: str, at: int) -> None:
        self.at = at
        super().__init__(text)


@dataclass(frozen=True)
class NativeFunction:
    """name: in the text that was written."""

    name: str
    function: JsonFunction | MultiHash | ListFunction

    @property
    def volatility(self) -> str:
        return self.function.volatility if isinstance(self.function, ListFunction) else "immutable"


@dataclass
class RewrittenText:
    """text: for DataFusion. functions: that it calls."""

    text: str
    functions: list[NativeFunction] = field(default_factory=list)


def with_native(
    text: str,
    type_of: Callable[[RewrittenText], pa.DataType],
    of_whole: bool = False,
    aggregates: Mapping[str, ListFunction] = NO_AGGREGATES,
) -> RewrittenText:
    """type_of: of an expression, for steps that are computed. of_whole: the text is a query with names of its own, so
    that not every expression has a type by itself. aggregates: of plugins; of a whole query, only calls with DISTINCT
    or ORDER BY become others. Raises WrongCall, and what `type_of` raises."""
    part = tokens(text)
    names = {*NAMES, *aggregates}
    if not any(token.text in _OPERATORS or (token.name or "").lower() in names for token in part):
        return RewrittenText(text)
    writing = _Writing(text, type_of, of_whole, aggregates)
    written = writing.rendered(part)
    return RewrittenText(text[: part[0].start] + written + text[part[-1].end :], writing.functions)


def check(text: str, part: Tokens) -> None:
    """part: of the text. Raises WrongCall for calls that no types could make right."""
    _Writing(text, lambda _: pa.string()).rendered(part)


class _Span:
    """Tokens that are replaced by a text."""

    def __init__(self, part: Tokens, text: str) -> None:
        self.start, self.end, self.text = part[0].start, part[-1].end, text


class _Writing:
    def __init__(
        self,
        text: str,
        type_of: Callable[[RewrittenText], pa.DataType],
        of_whole: bool = False,
        aggregates: Mapping[str, ListFunction] = NO_AGGREGATES,
    ) -> None:
        self._text, self._type_of, self._of_whole, self._aggregates = text, type_of, of_whole, aggregates
        self.functions: list[NativeFunction] = []

    def rendered(self, part: Tokens) -> str:
        """The text of a range, from its first token to its last."""
        if not part:
            return ""
        written, done = [], part[0].start
        for span in self._spans(part):
            written += [self._text[done : span.start], span.text]
            done = span.end
        return "".join([*written, self._text[done : part[-1].end]])

    def _spans(self, part: Tokens) -> Iterator[_Span]:
        """What is not as the user has written it."""
        chains = dict(self._chains(part))
        place = 0
        while place < len(part):
            if place in chains:
                chain = part[place : chains[place]]
                yield _Span(chain, self._chain(chain, None))
                place += len(chain)
                continue
            token, end = part[place], closing(part, place) + 1
            if end > place + 1:
                type_ = _cast_behind(part, end) if token.text == "(" else None
                yield from self._typed(part[place + 1 : end - 1], type_)
            elif _is_call(part, place):
                end = closing(part, place + 1) + 1
                inner, behind = part[place + 2 : end - 1], end
                if token.word in ("cast", "try_cast"):
                    yield from self._cast(inner)
                elif (function := self._aggregates.get((token.name or "").lower())) is not None and (
                    not self._of_whole or is_distinct_or_ordered(inner)
                ):
                    end = end_of_call(part, end)
                    yield _Span(part[place:end], self._over_list(function, token, inner, part[behind:end]))
                elif (token.name or "").lower() in NAMES:
                    yield _Span(part[place:end], self._call(token, inner, _cast_behind(part, end)))
                else:
                    yield from self._typed(inner, None)
            place = end

    def _cast(self, inner: Tokens) -> Iterator[_Span]:
        """What is between the brackets of CAST(... AS type)."""
        places = [place for place, token in _outside(inner) if token.word == "as"]
        if places and places[-1] + 1 < len(inner):
            yield from self._typed(inner[: places[-1]], inner[places[-1] + 1].word)
        else:
            yield from self._typed(inner, None)

    def _typed(self, part: Tokens, type_: str | None) -> Iterator[_Span]:
        """An expression, perhaps below a cast."""
        while type_ is not None and len(part) > 2 and part[0].text == "(" and closing(part, 0) == len(part) - 1:
            part = part[1:-1]
        if type_ is not None and list(self._chains(part)) == [(0, len(part))]:
            yield _Span(part, self._chain(part, type_))
        elif (
            type_ is not None and _is_call(part, 0) and closing(part, 1) == len(part) - 1 and part[0].word == "json_get"
        ):
            yield _Span(part, self._call(part[0], part[2:-1], type_))
        elif part:
            yield _Span(part, self.rendered(part))

    # ---- Operators ----

    def _chains(self, part: Tokens) -> Iterator[tuple[int, int]]:
        """Where operands with operators between them begin and end."""
        done = 0
        for place, token in _outside(part):
            if place >= done and token.kind == "sign" and token.text in _OPERATORS:
                start, done = self._start(part, place), self._end(part, place)
                yield start, done

    def _start(self, part: Tokens, place: int) -> int:
        """Where the left operand of an operator begins."""
        start = _operand_start(part, place)
        if start == place:
            raise WrongCall(f"something is missing before this {part[place].text}", part[place].start)
        before = part[start - 1] if start else None
        if before is not None and before.kind == "sign" and (before.text in _TIGHT or before.text == "||"):
            raise WrongCall(
                f"write brackets: ... {before.text} (a {part[place].text} 'k'), as {before.text} comes first here",
                part[place].start,
            )
        return start

    def _end(self, part: Tokens, place: int) -> int:
        """Behind the last operand of a chain of operators."""
        while place < len(part) and part[place].kind == "sign" and part[place].text in _OPERATORS:
            operator, place = part[place], place + 1
            end = _operand_end(part, place)
            if end == place:
                raise WrongCall(f"write a key or an index behind {operator.text}", operator.start)
            if part[place].kind in ("text", "number") and end > place + 1 and part[place + 1].text == "::":
                raise WrongCall(
                    f"this casts {part[place].text} alone: write (a {operator.text} {part[place].text})::type",
                    part[place + 1].start,
                )
            place = end
        if place < len(part) and part[place].kind == "sign" and (sign := part[place].text) in _TIGHT:
            raise WrongCall(
                f"write brackets: (a {operator.text} 'k') {sign} ..., as {sign} comes first here", part[place].start
            )
        return place

    def _chain(self, part: Tokens, type_: str | None) -> str:
        """type_: of a cast around it."""
        place = _operand_end(part, 0)
        document, name = self._document(part[:place]), ""
        steps: list[Tokens] = []
        while place < len(part):
            operator, end = part[place], _operand_end(part, place + 1)
            if name not in ("", "json_get"):  # what ->> answers is a text of its own
                document, steps = self._written(name, document, steps, operator), []
            name = _OPERATORS[operator.text]
            steps.append(part[place + 1 : end])
            place = end
        return self._written(_typed_name(name, type_), document, steps, part[0])

    def _document(self, part: Tokens) -> str:
        text = self.rendered(part)
        if self._of_whole:  # DataFusion checks the argument of the function
            return text
        given = self._type_of(RewrittenText(text, self.functions))
        given = given.value_type if pa.types.is_dictionary(given) else given
        if given not in (*_TEXTS, pa.null()):
            raise WrongCall(f"JSON is text, and this is {given}", part[0].start)
        return text

    # ---- Calls ----

    def _call(self, token: Token, inner: Tokens, type_: str | None) -> str:
        name = (token.name or "").lower()
        name = _ALIASES.get(name, name)
        arguments = _split(inner, ",") if inner else []
        if name == "multi_hash":
            return self._hash(arguments, token)
        if not arguments or not all(arguments):
            raise WrongCall(f"{name} needs a text, as in {_example(name)}", token.start)
        document, steps = self._document(arguments[0]), arguments[1:]
        if name in BY_PATH:
            value = steps[0][0].value if len(steps) == 1 and len(steps[0]) == 1 else None
            if value is None:
                at = steps[0][0].start if steps else token.start
                raise WrongCall(f"{name} needs a text and a path in single quotes, as in {_example(name)}", at)
            return self._of(name, value, document, None, steps[0][0].start)
        return self._written(_typed_name(name, type_), document, steps, token)

    def _hash(self, arguments: Sequence[Tokens], token: Token) -> str:
        if not arguments or not all(arguments):
            raise WrongCall("multi_hash needs values, as in multi_hash(a, b)", token.start)
        texts = [self.rendered(argument) for argument in arguments]
        try:
            function = MultiHash([self._type_of(RewrittenText(text, self.functions)) for text in texts])
        except InvalidArgument as error:
            raise WrongCall(str(error), token.start) from None
        return self._named("multi_hash", function, texts)

    def _over_list(self, function: ListFunction, token: Token, inner: Tokens, behind: Tokens) -> str:
        """A call of an aggregate. behind: FILTER and OVER."""
        name = (token.name or "").lower()
        name = f"{name} of" if function.call == function.steps.value else name
        self.functions.append(NativeFunction(name, function))
        if not function.is_of_list:
            return f"{quoted(name)}({self.rendered(inner)})"
        order = next((place for place, after in _outside(inner) if after.word == "order"), len(inner))
        is_distinct = bool(inner) and inner[0].word in ("distinct", "all")
        values = [self.rendered(value) for value in _split(inner[is_distinct:order], ",")]
        if len(values) > 1:
            fields = ", ".join(f"'{number}', {value}" for number, value in enumerate(values))
            values = [f"named_struct({fields})"]
        words = f"{inner[0].word} " if is_distinct else ""
        return f"{quoted(name)}(array_agg({words}{values[0]} {self.rendered(inner[order:])}) {self.rendered(behind)})"

    # ---- Functions ----

    def _written(self, name: str, document: str, steps: Sequence[Tokens], token: Token) -> str:
        """A call, or one within another where steps are computed. token: for errors."""
        path: list[str | int] = []
        for place, step in enumerate(steps):
            literal = _literal(step)
            if literal is not None:
                path.append(literal)
                continue
            if place:
                document = self._of("json_get", tuple(path), document, None, token.start)
            last = place == len(steps) - 1
            document = self._of(name if last else "json_get", (), document, step, token.start)
            if last:
                return document
            return self._written(name, document, steps[place + 1 :], token)
        return self._of(name, tuple(path), document, None, token.start)

    def _of(self, name: str, path: tuple[str | int, ...] | str, document: str, step: Tokens | None, at: int) -> str:
        texts, last = [document], None
        if step is not None:
            texts.append(self.rendered(step))
            given = self._type_of(RewrittenText(texts[1], self.functions))
            last = pa.int64() if pa.types.is_integer(given) else pa.string()
            if last == pa.string() and given not in _TEXTS:
                raise WrongCall(f"a step is a key or an index, and this is {given}", step[0].start)
        try:
            function = JsonFunction(name, path, last)
        except InvalidArgument as error:
            raise WrongCall(str(error), at) from None
        return self._named(name, function, texts)

    def _named(self, name: str, function: JsonFunction | MultiHash, arguments: Sequence[str]) -> str:
        own = f"{name}_{len(self.functions) + 1}"
        self.functions.append(NativeFunction(own, function))
        return f"{quoted(own)}({', '.join(arguments)})"


def _typed_name(name: str, type_: str | None) -> str:
    """type_: of a cast around the call."""
    return name if name != "json_get" or type_ is None else _CASTS.get(type_, "json_get_str")


def _example(name: str) -> str:
    return f"{name}(a, '$.b[0]')" if name in BY_PATH else f"{name}(a, 'b', 0)"


def _literal(step: Tokens) -> str | int | None:
    """A key or an index, if it is written as one."""
    texts = [token.text for token in step]
    if len(step) == 1 and step[0].value is not None:
        return step[0].value
    if step and step[-1].kind == "number" and step[-1].text.isdigit() and texts[:-1] in ([], ["-"]):
        return int("".join(texts))
    return None


def is_distinct_or_ordered(inner: Tokens) -> bool:
    """Whether the arguments of an aggregate have DISTINCT before them, or ORDER BY behind them."""
    words = [token.word for _, token in _outside(inner)]
    return words[:1] == ["distinct"] or "order" in words


def end_of_call(part: Tokens, place: int) -> int:
    """Behind FILTER (...) and OVER, if they follow the call that ends at this place."""
    while place + 1 < len(part) and part[place].word in ("filter", "over"):
        place = closing(part, place + 1) + 1
    return place


# ---- Operands ----


def closing(part: Tokens, place: int) -> int:
    """Where the bracket that opens here closes; otherwise the place itself."""
    if part[place].kind != "sign" or part[place].text not in _OPEN:
        return place
    depth = 0
    for at in range(place, len(part)):
        if part[at].kind == "sign":
            depth += (part[at].text in _OPEN) - (part[at].text in _CLOSE)
        if not depth:
            return at
    raise WrongCall(f"this {part[place].text} has no {_OPEN[part[place].text]}", part[place].start)


def _opening(part: Tokens, place: int) -> int:
    """Where the bracket that closes here opens."""
    depth = 0
    for at in range(place, -1, -1):
        if part[at].kind == "sign":
            depth += (part[at].text in _CLOSE) - (part[at].text in _OPEN)
        if not depth:
            return at
    raise WrongCall(f"nothing is open that this {part[place].text} closes", part[place].start)


def _outside(part: Tokens) -> list[tuple[int, Token]]:
    """Tokens outside of brackets, with their places."""
    outer, place = [], 0
    while place < len(part):
        outer.append((place, part[place]))
        place = closing(part, place) + 1
    return outer


def _split(part: Tokens, sign: str) -> list[Tokens]:
    cuts = [place for place, token in _outside(part) if token.text == sign]
    return [part[start + 1 : stop] for start, stop in zip([-1, *cuts], [*cuts, len(part)], strict=True)]


def _is_call(part: Tokens, place: int) -> bool:
    """Whether a function's name is here, and its bracket behind it."""
    is_path = place > 0 and part[place - 1].text == "."
    return place + 1 < len(part) and part[place + 1].text == "(" and _is_name(part[place]) and not is_path


def _cast_behind(part: Tokens, place: int) -> str | None:
    """The first word of the type, if ::type is here."""
    return part[place + 1].word if place + 1 < len(part) and part[place].text == "::" else None


def _is_name(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.word not in _NO_FUNCTIONS)


def _operand_end(part: Tokens, place: int) -> int:
    """Behind the operand that begins here: a literal, name, call or brackets, with . [] and :: behind it."""
    if place >= len(part):
        return place
    start, token = place, part[place]
    if token.word == "case":
        depth = 0
        for at in range(place, len(part)):
            depth += (part[at].word == "case") - (part[at].word == "end")
            if not depth:
                return at + 1
        raise WrongCall("this CASE has no END", token.start)
    if token.text in ("-", "+") and place + 1 < len(part) and part[place + 1].kind == "number":
        return place + 2
    if token.word in _PREFIXES and place + 1 < len(part) and part[place + 1].kind == "text":
        return place + 2
    if token.text in _OPEN and token.kind == "sign":
        place = closing(part, place) + 1
    elif token.kind in ("text", "number") or _is_name(token):
        place += 1
    while place < len(part) and place > start:
        text = part[place].text if part[place].kind == "sign" else ""
        if text == "[" or (text == "(" and _is_name(part[place - 1])):
            place = closing(part, place) + 1
        elif text in (".", "::") and place + 1 < len(part):
            place += 2
        else:
            break
    return place


def _operand_start(part: Tokens, place: int) -> int:
    """Where the operand begins that ends here; the place itself if there is none."""
    start = place
    while start > 0:
        token = part[start - 1]
        if token.word == "end":
            depth = 0
            for at in range(start - 1, -1, -1):
                depth += (part[at].word == "end") - (part[at].word == "case")
                if not depth:
                    return at
        if token.kind == "sign" and token.text in _CLOSE:
            start = _opening(part, start - 1)
            before = part[start - 1] if start else None
            if before is not None and token.text == "]" and (before.kind != "sign" or before.text in _CLOSE):
                continue
            if before is not None and token.text == ")" and _is_name(before):
                start -= 1
        elif token.kind in ("text", "number") or _is_name(token):
            start -= 1
            if start and part[start - 1].word in _PREFIXES and token.kind == "text":
                return start - 1
        else:
            return start
        if not start or part[start - 1].text not in (".", "::"):
            return start
        start -= 1
    return start
