"""Tokens as a tree: precedence climbing, as DataFusion's parser binds operators.

Assumes: the text is right. DataFusion says where it is not, so what is not known here makes no error: it is a Group, in
which whatever is known is found.
"""

from __future__ import annotations

from .expressions import CallExpression, Case, Column, Constant, Expression, Group, Logic, Operation, Subquery
from .text import Cursor, Tokens, Wrong, closing, leveled, split

_OR, _AND, _NOT, _IS, _LIKE, _UNARY, _CAST = 5, 10, 15, 17, 19, 45, 50
_BINDING = {
    **dict.fromkeys(("->", "->>", "?", "@>", "<@"), 26),
    **dict.fromkeys(("=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", "~", "!~", "~*", "!~*"), 20),
    **{"|": 21, "#": 22, "^": 22, "&": 23, "xor": 24, "<<": 25, ">>": 25},
    **dict.fromkeys(("+", "-"), 30),
    **dict.fromkeys(("*", "/", "%", "div", "||"), 40),
    **{"collate": 42, "=>": 3, ":": 3},
}
_PREDICATES = {"like", "ilike", "similar", "rlike", "regexp", "between", "in"}
_TYPED = {"date", "timestamp", "time", "interval", "datetime"}
_WORDS = {"null", "true", "false", "default", "unknown"}
_OF_TIME = {"current_timestamp", "current_date", "current_time"}
_ENDS = {*_BINDING, *_PREDICATES, "and", "or", "not", "is", "as", "when", "then", "else", "end", "from", "for", "order"}
_UNITS = {"year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"}
_TYPE_WORDS = {"precision", "unsigned", "varying", "with", "without", "time", "zone"}
_DIRECTIONS = {"both", "leading", "trailing"}
_MODIFIERS = {"distinct", "all"}
_FRAMES = {"rows", "range", "groups"}
_BEHIND = {"asc", "desc", "nulls", "first", "last", "ignore", "respect"}


def parsed(part: Tokens) -> Expression:
    """Raises Wrong for brackets that do not match, and for a CASE without END."""
    return _loose(part)


def _loose(part: Tokens) -> Expression:
    """An expression, or several with words between them: x FROM 1 FOR 2"""
    expressions: list[Expression] = []
    reader = _Reader(part)
    while reader.now is not None:
        before = reader.at
        expression = reader.expression(0)
        if reader.at == before:
            reader.at += 1
        elif expression is not None:
            expressions.append(expression)
    if len(expressions) == 1 and len(expressions[0].part) == len(part):
        return expressions[0]
    return Group(part, tuple(expressions))


class _Reader(Cursor):
    def __init__(self, part: Tokens) -> None:
        super().__init__(part)
        self._all = part

    def _from(self, start: int) -> Tokens:
        return self._all[start : self.at]

    def _sign(self, ahead: int = 0) -> str:
        """The next word or sign; quoted names and texts are none."""
        place = self.at + ahead
        if place >= len(self._all):
            return ""
        token = self._all[place]
        return token.word or (token.text if token.kind == "sign" else "")

    def expression(self, binding: int) -> Expression | None:
        """What binds tighter than that. None: nothing that is known stands here."""
        start = self.at
        left = self._prefix()
        while left is not None:
            more = self._behind(left, start, binding)
            if more is None:
                return left
            left = more
        return None

    def _operation(self, start: int, first: int, children: list[Expression | None]) -> Operation:
        """first: the place of its operator."""
        return Operation(self._from(start), tuple(child for child in children if child is not None), self._words(first))

    def _words(self, first: int) -> tuple[str, ...]:
        token = self._all[first]
        return (token.word or token.text,)

    # ---- Operators ----

    def _prefix(self) -> Expression | None:
        start, sign = self.at, self._sign()
        if sign == "not":
            self.at += 1
            return self._operation(start, start, [self.expression(_NOT)])
        if sign in ("-", "+", "~", "!", "@") and self.at + 1 < len(self._all):
            self.at += 1
            inner = self.expression(_UNARY)
            if isinstance(inner, Constant) and sign == "-":
                return Constant(self._from(start))
            return self._operation(start, start, [inner])
        return self._atom()

    def _behind(self, left: Expression, start: int, binding: int) -> Expression | None:
        """`left` with the operator behind it. None: there is none that binds tighter."""
        at, sign = self.at, self._sign()
        if sign in ("and", "or"):
            return self._logic(left, start, sign, binding)
        if sign == "is" and binding < _IS:
            self.at += 1
            while self._sign() in ("not", "null", "true", "false", "unknown", "json", "normalized"):
                self.at += 1
            others = []
            if self.take("distinct", "from"):
                others = [self.expression(_IS)]
            return self._operation(start, at, [left, *others])
        if sign in ("isnull", "notnull") and binding < _IS:
            self.at += 1
            return self._operation(start, at, [left])
        if (sign in _PREDICATES or (sign == "not" and self._sign(1) in _PREDICATES)) and binding < _LIKE:
            return self._predicate(left, start)
        if (sign, self._sign(1), self._sign(2)) == ("at", "time", "zone") and binding < 41:
            self.at += 3
            return self._operation(start, at, [left, self.expression(41)])
        if sign == "::" and binding < _CAST:
            self.at += 1
            self._type()
            return self._operation(start, at, [left])
        if sign == "[" or (sign == "." and self._sign(1) and not isinstance(left, Constant)):
            return self._access(left, start)
        if sign not in _BINDING or _BINDING[sign] <= binding:
            return None
        self.at += 1
        return self._operation(start, at, [left, self.expression(_BINDING[sign])])

    def _logic(self, left: Expression, start: int, word: str, binding: int) -> Expression | None:
        own = _OR if word == "or" else _AND
        if binding >= own:
            return None
        operands = [left]
        while self.take(word):
            operand = self.expression(own)
            if operand is not None:
                operands.append(operand)
        return Logic(self._from(start), tuple(operands), (word,))

    def _predicate(self, left: Expression, start: int) -> Expression:
        self.take("not")
        at, children = self.at, [left]
        word = self.next().word
        if word == "similar":
            self.take("to")
        if word == "between":
            for end in ("and", ""):
                operand = self.expression(20)
                children += [operand] if operand is not None else []
                if end:
                    self.take(end)
            return self._operation(start, at, list(children))
        operand = self.expression(_LIKE)
        children += [operand] if operand is not None else []
        if self.take("escape") and self.now is not None:
            self.at += 1
        return self._operation(start, at, list(children))

    def _access(self, left: Expression, start: int) -> Expression:
        if self._sign() == ".":
            self.at += 2
            return Group(self._from(start), (left,))
        inner = self._inside()
        return Group(self._from(start), (left, *([_loose(inner)] if inner else [])))

    def _type(self) -> None:
        """Passes a type: DECIMAL(10, 2), DOUBLE PRECISION, TEXT[]"""
        self.at += 1
        while self._sign() in _TYPE_WORDS or self._sign() == "(" or (self._sign(), self._sign(1)) == ("[", "]"):
            self.at = closing(self._all, self.at) + 1 if self._sign() in ("(", "[") else self.at + 1

    def _inside(self) -> Tokens:
        """What is in the brackets that open here."""
        end = closing(self._all, self.at)
        inner, self.at = self._all[self.at + 1 : end], end + 1
        return inner

    # ---- Operands ----

    def _atom(self) -> Expression | None:
        start, token, sign = self.at, self.now, self._sign()
        if token is None:
            return None
        if sign in ("(", "[", "{"):
            inner = self._inside()
            if inner and inner[0].word in ("select", "with"):
                return Subquery(self._from(start))
            return Group(self._from(start), _listed(inner))
        if sign == "case":
            return self._case()
        if sign == "*" or token.kind in ("number", "text"):
            self.at += 1
            return Constant(self._from(start))
        if token.name is None:
            return None
        if self._sign(1) == "(" and sign not in _ENDS:
            return self._call()
        following = self._all[self.at + 1] if self.at + 1 < len(self._all) else None
        if sign in _TYPED and following is not None and (following.kind in ("text", "number")):
            self.at += 2
            if sign == "interval" and self._sign().removesuffix("s") in _UNITS:
                self.at += 1
            return Constant(self._from(start))
        if sign in _OF_TIME:
            self.at += 1
            return CallExpression(self._from(start), (), sign)
        if sign in _ENDS:
            return None
        self.at += 1
        if sign in _WORDS:
            return Constant(self._from(start))
        while self._sign() == "." and self.at + 1 < len(self._all) and self._all[self.at + 1].name is not None:
            if self._sign(2) == "(":
                self.at += 1
                return self._call(start)
            self.at += 2
        return Column(self._from(start))

    def _call(self, start: int | None = None) -> Expression:
        start = self.at if start is None else start
        name = (self.next().name or "").lower()
        inner = self._inside()
        if inner and inner[0].word in ("select", "with"):
            children: tuple[Expression, ...] = (Subquery(self._all[start + 1 : self.at]),)
        else:
            children = _arguments(name, inner)
        arguments, filtered, over = children, None, None
        while True:
            sign, after = self._sign(), self._sign(1)
            if sign in ("ignore", "respect") and after == "nulls":
                self.at += 2
            elif sign == "filter" and after == "(":
                self.at += 1
                inner = self._inside()
                filtered = _loose(inner[1:]) if len(inner) > 1 else None
                children += () if filtered is None else (filtered,)
            elif (sign, after) == ("within", "group") and self._sign(2) == "(":
                self.at += 2
                children += _arguments("", self._inside())
            elif sign == "over" and after == "(":
                first = self.at
                self.at += 1
                inner = self._inside()
                over = self._from(first)
                children += _ordered(inner)
            elif sign == "over" and self.at + 1 < len(self._all):
                first = self.at
                self.at += 2
                over = self._from(first)
            else:
                return CallExpression(self._from(start), children, name, arguments, filtered, over)

    def _case(self) -> Expression:
        start = self.at
        stop = _end_of_case(self._all, start)
        self.at = stop + 1
        pieces = _branches(self._all[start + 1 : stop])
        operand = _loose(pieces[0][1]) if pieces[0][1] else None
        children = [] if operand is None else [operand]
        branches: list[tuple[Expression, Expression]] = []
        otherwise, condition = None, None
        for word, inner in pieces[1:]:
            if not inner:
                continue
            child = _loose(inner)
            children.append(child)
            if word == "when":
                condition = child
            elif word == "then" and condition is not None:
                branches.append((condition, child))
            elif word == "else":
                otherwise = child
        return Case(self._from(start), tuple(children), operand, tuple(branches), otherwise)


def _listed(inner: Tokens) -> tuple[Expression, ...]:
    return tuple(_loose(part) for part in split(inner, ",") if part) if inner else ()


def _arguments(name: str, inner: Tokens) -> tuple[Expression, ...]:
    """Those of a call, with what its ORDER BY has behind them."""
    if inner and (inner[0].word in _MODIFIERS or (name == "trim" and inner[0].word in _DIRECTIONS)):
        inner = inner[1:]
    if name == "extract":
        inner = inner[2:]
    if name in ("cast", "try_cast"):
        ends = [place for place, token, depth in leveled(inner) if not depth and token.word == "as"]
        inner = inner[: ends[-1]] if ends else inner
    order = next((at for at, token, depth in leveled(inner) if not depth and token.word == "order"), len(inner))
    return (*_listed(_stripped(inner[:order])), *_ordered(inner[order:]))


def _ordered(inner: Tokens) -> tuple[Expression, ...]:
    """Those of PARTITION BY and ORDER BY."""
    expressions: list[Expression] = []
    starts = [at + 1 for at, token, depth in leveled(inner) if not depth and token.word == "by"]
    for start, stop in zip(starts, [*(after - 2 for after in starts[1:]), len(inner)], strict=False):
        behind = (at for at, token, depth in leveled(inner) if not depth and at >= start and token.word in _FRAMES)
        for part in split(inner[start : min(stop, next(behind, stop))], ","):
            if part := _stripped(part):
                expressions.append(_loose(part))
    return tuple(expressions)


def _stripped(part: Tokens) -> Tokens:
    """Without the words that may stand behind an expression."""
    length = len(part)
    while length > 1 and part[length - 1].word in _BEHIND:
        length -= 1
    return part[:length]


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
