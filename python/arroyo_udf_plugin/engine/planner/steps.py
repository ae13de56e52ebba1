"""What is computed and called for expressions with calls of UDFs, and in which order.

    CASE WHEN a > 1 THEN f(a / b) ELSE 0 END

    query    __c1 = CASE WHEN a > 1 THEN 1 ELSE 0 END
             __g2 = __c1 = 1,  __a2_0 = CASE WHEN __c1 = 1 THEN a / b END
    calls    __r2 = f(__a2_0) if __g2
    query    CASE __c1 WHEN 1 THEN __r2 ELSE 0 END

What decides whether a call is made is computed once, as a column: so it decides the same everywhere, and what it
contains is neither paid for nor drawn twice. Calls in CASE, COALESCE, AND and OR, and all that is computed for them
alone, are for rows that reach them.

Even stages are queries, odd ones are calls. A step takes place at the first stage in which its columns are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..datafusion.tokens import column_name, quoted, tokens
from .diagnostics import AGGREGATE
from .expressions import COALESCE, CallExpression, Case, Constant, Expression, Logic
from .flow import Flow
from .functions import PlannedUdf
from .text import Text, Unending, Wrong, closing, leveled, split

_SHORT = 200  # characters of a definition that is written again, where that saves a query
BEFORE = -1
"""The stage of the columns that are there from the beginning."""


@dataclass(frozen=True)
class RowGuard:
    """Tests of columns, all of which hold for the rows that reach something. none of them fails, or is null and false
    at once. reasons: the tests that led there, also those which the others imply."""

    tests: tuple[tuple[str, str], ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        return " AND ".join(f"{column} {test}" for column, test in self.tests)

    def excludes(self, other: RowGuard) -> bool:
        """Whether no row reaches both, as these are different branches."""
        mine = dict(self.reasons)
        return any(test[:1] == "=" and mine.get(column, test) != test for column, test in other.reasons)


def also(guard: RowGuard | None, column: str, test: str, implied: bool = False) -> RowGuard:
    """guard, and a test of a column. implied: the test holds for no other rows."""
    guard, new = guard or RowGuard(), (column, test)
    return RowGuard((new,) if implied else (*guard.tests, new), (*guard.reasons, new))


@dataclass(frozen=True)
class Computed:
    """A column that a query computes. node: what it is of, for errors. stage: of the query."""

    text: str
    node: Expression
    stage: int
    is_volatile: bool


@dataclass(frozen=True)
class Made:
    """A call. columns: its arguments. guard: the column of its condition."""

    call: CallExpression
    udf: PlannedUdf
    columns: Sequence[str]
    guard: str | None
    stage: int

    def text(self, result: str) -> str:
        """As a pipeline has it."""
        condition = f" if {quoted(self.guard)}" if self.guard else ""
        return f"{result} = {self.udf.function.name}({', '.join(map(quoted, self.columns))}){condition}"


@dataclass(frozen=True)
class _Known:
    """The value of a call for the rows of a guard. made: the column of those for which it was made."""

    guard: RowGuard | None
    made: str | None
    text: str


class ComputedSteps:
    """columns, calls: by the column that they make. floor: nothing takes place before this stage, from now on."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        given: Collection[str],
        table: str,
        texts: Mapping[Expression, str],
        same: Mapping[Expression, str],
    ) -> None:
        """given: the columns of the rows, which are called `table`. texts: of nodes which are columns. same: of nodes,
        for finding equal ones."""
        self.columns: dict[str, Computed] = {}
        self.calls: dict[str, Made] = {}
        self.floor = 0
        self._text, self._udfs, self._flow, self._given, self._table = text, udfs, flow, set(given), table
        self._texts, self._same = dict(texts), {**same, **texts}
        self._known: dict[str, list[_Known]] = {}  # calls, by their normal texts
        self._computed: dict[str, str] = {}  # columns, by their texts
        self._calling: dict[Expression, bool] = {}

    # ---- Moments ----

    def stage_of(self, text: str) -> int:
        """When all columns in it are there."""
        return max(map(self._stage_of, names_in(text)), default=BEFORE)

    def query_after(self, text: str) -> int:
        """The first query that can compute it."""
        stage = self.stage_of(text)
        return max(self.floor, stage + 1 if stage % 2 else stage + 2)

    def _stage_of(self, name: str) -> int:
        column = self.columns.get(name) or self.calls.get(name)
        return BEFORE if column is None else column.stage

    # ---- Expressions ----

    def is_calling(self, node: Expression) -> bool:
        """Whether a value of it needs a call of a UDF."""
        if node not in self._calling:
            is_call = isinstance(node, CallExpression) and node.name in self._udfs
            self._calling[node] = node not in self._texts and (is_call or any(map(self.is_calling, node.children)))
        return self._calling[node]

    def value(self, node: Expression, guard: RowGuard | None = None) -> str:
        """As SQL over columns, for the rows that reach it. Raises Wrong."""
        if not self.is_calling(node):
            return node.text(self._text, self._texts)
        if isinstance(node, CallExpression) and node.name in self._udfs:
            return self._call(node, guard)
        if isinstance(node, Logic):
            return self._logic(node, guard)
        if isinstance(node, CallExpression) and node.name in COALESCE:
            return self._coalesce(node, guard)
        if isinstance(node, Case) and node.branches:
            return self._case(node, guard)
        return node.text(self._text, {child: self.value(child, guard) for child in node.children})

    def value_only(self, node: Expression, condition: Expression) -> str:
        """The value where a condition holds, and null elsewhere."""
        is_plain = not (self.is_calling(node) or self.is_calling(condition) or condition.is_volatile(self._udfs))
        if is_plain:
            return self._guarded(node, self.value(node), also(None, f"({self.value(condition)}\n)", "IS TRUE"))
        decided = self._texts[condition] = self._column(condition, self.value(condition), None)
        guard = also(None, decided, "IS TRUE")
        return self._guarded(node, self.value(node, guard), guard)

    def _logic(self, node: Logic, guard: RowGuard | None) -> str:
        undecided = "IS NOT FALSE" if node.word == "and" else "IS NOT TRUE"
        before: list[str] = []
        for operand in node.children:
            own = guard
            if before and self.is_calling(operand):
                before = [self._column(node, self._joined(node, before), guard)]
                own = also(guard, before[0], undecided)
            before.append(self.value(operand, own))
        return f"({self._joined(node, before)})"

    def _joined(self, node: Logic, texts: Sequence[str]) -> str:
        return texts[0] if len(texts) == 1 else f" {node.word.upper()} ".join(f"({text}\n)" for text in texts)

    def _coalesce(self, node: CallExpression, guard: RowGuard | None) -> str:
        name = node.part[0].text
        before: list[str] = []
        for argument in node.arguments:
            own = guard
            if before and self.is_calling(argument):
                text = before[0] if len(before) == 1 else f"{name}({', '.join(before)})"
                before = [self._column(node, text, guard)]
                own = also(guard, before[0], "IS NULL")
            before.append(self.value(argument, own))
        return f"{name}({', '.join(before)})"

    def _case(self, node: Case, guard: RowGuard | None) -> str:
        results = [then for _, then in node.branches] + ([node.otherwise] if node.otherwise is not None else [])
        later = [when for when, _ in node.branches[1:]]
        if not any(map(self.is_calling, [*results, *later])):
            return node.text(self._text, {child: self.value(child, guard) for child in node.children})
        operand = ""
        if node.operand is not None:
            operand = self.value(node.operand, guard)
            if node.operand.is_volatile(self._udfs):
                operand = self._column(node.operand, operand, guard)
        before: str | None = None
        whens: list[str] = []
        for number, (when, _) in enumerate(node.branches, 1):
            own = guard
            if whens and self.is_calling(when):
                before = self._choice(node, operand, before, whens, "", guard)
                whens, own = [], also(guard, before, "IS NULL")
            whens.append(f"WHEN {self.value(when, own)}\nTHEN {number}")
        chosen = self._choice(node, operand, before, whens, " ELSE 0", guard)
        written = [f"CASE {chosen}"]
        for number, (_, then) in enumerate(node.branches, 1):
            text = self.value(then, also(guard, chosen, f"= {number}", implied=True))
            written.append(f"WHEN {number} THEN {text}\n")
        if node.otherwise is not None:
            text = self.value(node.otherwise, also(guard, chosen, "= 0", implied=True))
            written.append(f"ELSE {text}\n")
        return " ".join([*written, "END"])

    def _choice(
        self, node: Case, operand: str, before: str | None, whens: Sequence[str], otherwise: str, guard: RowGuard | None
    ) -> str:
        """The column of the branch that a row takes: its number, 0 for ELSE. before: what was chosen before, if not
        null."""
        text = f"CASE {operand}\n{' '.join(whens)}{otherwise} END"
        if before is not None:
            text = f"CASE WHEN {before} IS NOT NULL THEN {before} ELSE {text} END"
        return self._column(node, text, guard)

    # ---- Columns ----

    def _column(self, node: Expression, text: str, guard: RowGuard | None, name: str | None = None) -> str:
        """A column with this value where it is reached, and null elsewhere. name: if it becomes a new one."""
        column = column_name(text, self._table)
        if column is not None and (column in self._given or column in self.columns or column in self.calls):
            return quoted(column)
        text = self._guarded(node, text, guard)
        is_volatile = node.is_volatile(self._udfs)
        if text in self._computed and not is_volatile:
            return self._computed[text]
        name = name or f"__c{self._flow.result()}"
        longer = self._expanded(text)
        written = longer if self.query_after(longer) < self.query_after(text) else text
        self.columns[name] = Computed(written, node, self.query_after(written), is_volatile)
        self._computed[text] = quoted(name)
        return quoted(name)

    def _guarded(self, node: Expression, text: str, guard: RowGuard | None) -> str:
        """DataFusion has no unnest inside CASE."""
        if guard is None or node.calls_of({"unnest"}):
            return text
        return f"CASE WHEN {guard.text} THEN {text}\nEND"

    def _expanded(self, text: str) -> str:
        """With short definitions in the places of columns. DataFusion computes what is there twice once."""
        written, done = [], 0
        for token in tokens(text):
            column = self.columns.get(token.name or "")
            if column is not None and not column.is_volatile and len(column.text) <= _SHORT:
                written += [text[done : token.start], f"({column.text}\n)"]
                done = token.end
        return "".join([*written, text[done:]])

    # ---- Calls ----

    def _call(self, call: CallExpression, guard: RowGuard | None) -> str:
        """A call that has been made for a row is not made for it again, unless it is volatile."""
        udf = self._udfs[call.name]
        self._check(call, udf)
        known = [] if call.is_volatile(self._udfs) else self._known.setdefault(call.normal(self._same), [])
        reasons = () if guard is None else guard.reasons
        for earlier in known:
            if earlier.guard is None or set(earlier.guard.reasons) <= set(reasons):
                return earlier.text
        others = [
            earlier for earlier in known if guard is None or not (earlier.guard and guard.excludes(earlier.guard))
        ]
        own = guard
        for earlier in others:
            own = also(own, earlier.made or "", "IS NOT TRUE")
        texts = [self.value(argument, own) for argument in call.arguments]
        number = self._flow.result()
        columns = []
        for place, (text, argument) in enumerate(zip(texts, call.arguments, strict=True)):
            columns.append(_unquoted(self._column(argument, text, own, f"__a{number}_{place}")))
        made = None
        if own is not None:
            made = self._column(Constant(call.part), f"({own.text}) IS TRUE", None, f"__g{number}")
        needed = [quoted(column) for column in columns] + ([made] if made else [])
        ready = max(map(self.stage_of, needed), default=BEFORE)
        stage = max(self.floor + 1, ready + 2 if ready % 2 else ready + 1)
        result = f"__r{number}"
        self.calls[result] = Made(call, udf, columns, None if made is None else _unquoted(made), stage)
        text = result
        for earlier in others:
            text = f"CASE WHEN {earlier.made} THEN {earlier.text} ELSE {text} END"
        known.append(_Known(guard, made, text))
        return text

    def _check(self, call: CallExpression, udf: PlannedUdf) -> None:
        check_arguments(call, udf)
        if udf.is_aggregate:
            raise Unending(AGGREGATE, call.start)
        if udf.function.kind not in ("sync", "async", "table"):
            raise Wrong(f"{udf.signature} is {udf.function.kind}, and no row can call it", call.start)
        if udf.function.timeout is not None and self._flow.settings.isolation != "process":
            raise Wrong(
                f"{call.name} has a timeout, and only worker processes keep one: write SET isolation = 'process', or "
                "leave the timeout out",
                call.start,
            )


def check_arguments(call: CallExpression, udf: PlannedUdf) -> None:
    """Raises Wrong if there are not as many as the function has."""
    if len(call.arguments) != len(udf.function.arguments):
        raise Wrong(f"{len(call.arguments)} arguments are given, and the function is {udf.signature}", call.start)


def check_aggregate(call: CallExpression, udf: PlannedUdf) -> None:
    """As `check_arguments`. What is behind ORDER BY is no argument."""
    inner = call.part[2 : closing(call.part, 1)]
    end = next((place for place, token, depth in leveled(inner) if not depth and token.word == "order"), len(inner))
    given, wanted = len(split(inner[:end], ",")), len(udf.function.arguments)
    if given != wanted:
        raise Wrong(f"{given} arguments are given, and the function is {udf.signature}", call.start)


def names_in(text: str) -> Iterator[str]:
    """Those of columns, and other words."""
    return (token.name for token in tokens(text) if token.name is not None)


def _unquoted(column: str) -> str:
    (token,) = tokens(column)
    return token.name or ""
