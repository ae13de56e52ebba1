"""Calls of UDFs in an expression: where they are, and under which condition each of them is reached.

    CASE WHEN a > 1 THEN f(a) ELSE g(f(b)) END
         f(a)      if (a > 1) IS TRUE
         f(b)      if (a > 1) IS NOT TRUE
         g(f(b))   if (a > 1) IS NOT TRUE, after f(b)

A call inside CASE, COALESCE, AND or OR is made only for rows that reach it: a function may cost money, or fail.

Assumes: the text is right. DataFusion says where it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..sql.tokens import Token
from .text import Tokens, Unending, Wrong, closing, leveled, split

_COALESCE = {"coalesce", "nvl", "ifnull"}


@dataclass(frozen=True)
class Guard:
    """A range of the text, and what it must be: "IS TRUE". equal: if there is one, whether it equals the range is."""

    part: Tokens
    is_: str
    equal: Tokens = ()

    def text(self, text: str, results: Mapping[Called, str]) -> str:
        """As SQL."""
        condition = f"({cut(text, self.part, results)}\n)"
        if self.equal:
            condition = f"({condition} = ({cut(text, self.equal, results)}\n))"
        return f"{condition} {self.is_}"


@dataclass(frozen=True, eq=False)
class Called:
    """A call. whole, arguments: their ranges. guards: all must hold. inner: calls in arguments and guards."""

    name: str
    whole: Tokens
    arguments: Sequence[Tokens]
    guards: Sequence[Guard]
    inner: list[Called] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.whole[0].start

    @property
    def end(self) -> int:
        return self.whole[-1].end

    def covers(self, other: Called) -> bool:
        """Whether the other one's text is part of this one's."""
        return self.start <= other.start and other.end <= self.end


def calls_in(part: Tokens, functions: Collection[str]) -> list[Called]:
    """The calls in an expression, inner ones first. functions: their names. Raises Wrong."""
    return _Finding(functions).expression(part, ())


def conjuncts(part: Tokens) -> list[Tokens]:
    """The operands of AND, if that is what an expression is; otherwise itself."""
    while part and part[0].text == "(" and closing(part, 0) == len(part) - 1:
        part = part[1:-1]
    if len(_operands(part, "or")) > 1:
        return [part]
    operands = _operands(part, "and")
    return [part] if len(operands) == 1 else [inner for one in operands for inner in conjuncts(one)]


def cut(text: str, part: Tokens, results: Mapping[Called, str]) -> str:
    """The user's text of an expression, with the results of calls in their places."""
    if not part:
        return ""
    start, end = part[0].start, part[-1].end
    written, done = [], start
    for call in sorted(results, key=lambda call: (call.start, -call.end)):
        if done <= call.start and call.end <= end:
            written += [text[done : call.start], results[call]]
            done = call.end
    return "".join([*written, text[done:end]])


class _Finding:
    def __init__(self, functions: Collection[str]) -> None:
        self._functions = functions
        self._known: dict[int, Called] = {}  # by their start: a guard is looked through again

    def expression(self, part: Tokens, guards: tuple[Guard, ...]) -> list[Called]:
        """Operands of OR, then of AND: each is reached if those before it do not decide."""
        for word, undecided in (("or", "IS NOT TRUE"), ("and", "IS NOT FALSE")):
            operands = _operands(part, word)
            if len(operands) > 1:
                return self._in_turn(operands, guards, undecided)
        return list(self._operand(part, guards))

    def _in_turn(self, operands: Sequence[Tokens], guards: tuple[Guard, ...], undecided: str) -> list[Called]:
        """Each operand is reached if those before it are as `undecided` says."""
        found: list[Called] = []
        for operand in operands:
            found += self.expression(operand, guards)
            guards = (*guards, Guard(operand, undecided))
        return found

    def _operand(self, part: Tokens, guards: tuple[Guard, ...]) -> Iterator[Called]:
        place = 0
        while place < len(part):
            token = part[place]
            if token.word == "case" and not _is_name(part, place):
                end = _end_of_case(part, place)
                yield from self._case(part[place + 1 : end], guards)
                place = end
            elif token.text in ("(", "[", "{"):
                end = closing(part, place)
                yield from self._brackets(part, place, end, guards)
                place = end
            place += 1

    def _brackets(self, part: Tokens, place: int, end: int, guards: tuple[Guard, ...]) -> Iterator[Called]:
        inner = part[place + 1 : end]
        name = part[place - 1] if place and part[place].text == "(" else None
        if name is not None and (name.name is None or (place > 1 and part[place - 2].text == ".")):
            name = None
        function = None if name is None else (name.name or "").lower()
        if inner and inner[0].word in ("select", "with"):
            raise Unending("a query inside an expression is not supported: rows pass one by one", inner[0].start)
        arguments = split(inner, ",") if inner else []
        if function in self._functions and name is not None:
            nested = [call for argument in arguments for call in self.expression(argument, guards)]
            yield from nested
            if name.start not in self._known:
                call = self._called(function or "", part[place - 1 : end + 1], arguments, guards, nested)
                self._known[name.start] = call
            yield self._known[name.start]
        elif function in _COALESCE:
            yield from self._in_turn(arguments, guards, "IS NULL")
        else:
            for argument in arguments:
                yield from self.expression(argument, guards)

    def _called(
        self,
        name: str,
        whole: Tokens,
        arguments: Sequence[Tokens],
        guards: tuple[Guard, ...],
        nested: list[Called],
    ) -> Called:
        in_guards = [
            call for guard in guards for part in (guard.part, guard.equal) for call in self.expression(part, ())
        ]
        return Called(name, whole, arguments, guards, [*nested, *in_guards])

    def _case(self, part: Tokens, guards: tuple[Guard, ...]) -> Iterator[Called]:
        """CASE [operand] WHEN ... THEN ... [ELSE ...], without its first and last word."""
        branches = _branches(part)
        operand = condition = branches[0][1]
        yield from self.expression(operand, guards)
        for word, inner in branches[1:]:
            if word == "when":
                yield from self.expression(inner, guards)
                condition = inner
            elif word == "then":
                decides, equal = (operand, condition) if operand else (condition, ())
                yield from self.expression(inner, (*guards, Guard(decides, "IS TRUE", equal)))
                guards = (*guards, Guard(decides, "IS NOT TRUE", equal))
            else:
                yield from self.expression(inner, guards)


def _operands(part: Tokens, word: str) -> list[Tokens]:
    """Cut at a word, but not inside brackets, CASE or BETWEEN."""
    cuts, cases, betweens = [], 0, 0
    for place, token, depth in leveled(part):
        if depth or not token.word or _is_name(part, place):
            continue
        if token.word == "case":
            cases += 1
        elif token.word == "end" and cases:
            cases -= 1
        elif cases:
            continue
        elif token.word == "between":
            betweens += 1
        elif token.word == "and" and betweens:
            betweens -= 1
        elif token.word == word:
            cuts.append(place)
    return [part[start + 1 : stop] for start, stop in zip([-1, *cuts], [*cuts, len(part)], strict=True)]


def _is_name(part: Tokens, place: int) -> bool:
    """Whether a word is a name whatever it says: a.case"""
    return place > 0 and part[place - 1].text == "."


def _end_of_case(part: Tokens, start: int) -> int:
    cases = 0
    for place, token, depth in leveled(part[start:]):
        if depth or _is_name(part, start + place):
            continue
        cases += (token.word == "case") - (token.word == "end")
        if not cases:
            return start + place
    raise Wrong("this CASE has no END", part[start].start)


def _branches(part: Tokens) -> list[tuple[str, Tokens]]:
    """The parts of a CASE, each with the word before it; the first is its operand, often empty."""
    starts: list[tuple[str, int]] = [("", -1)]
    cases = 0
    for place, token, depth in leveled(part):
        if depth or _is_name(part, place):
            continue
        cases += (token.word == "case") - (token.word == "end")
        if not cases and token.word in ("when", "then", "else"):
            starts.append((token.word, place))
    stops = [start for _, start in starts[1:]] + [len(part)]
    return [(word, part[start + 1 : stop]) for (word, start), stop in zip(starts, stops, strict=True)]


def may_fail(part: Tokens) -> bool:
    """Whether an expression may fail for a row: it divides, casts, or calls something."""
    return any(_fails(part, place, token) for place, token in enumerate(part))


def _fails(part: Tokens, place: int, token: Token) -> bool:
    is_call = token.text == "(" and place > 0 and part[place - 1].name is not None
    return token.text in ("/", "%", "::") or (is_call and part[place - 1].word not in ("and", "or", "not", "in"))
