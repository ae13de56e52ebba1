"""Compiles the body of a function: statements, and what is known of variables after each of them.

Guarantees: the C function that comes out gives, for each row, the value that Python gives, or defers the row. A
statement that raises defers; so a `try` is compiled as its body, and Python runs the rows in which something is caught.
ASSUMES: what Facts says of the module.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence

from .code import Code, raised
from .expressions import Expressions
from .library import FunctionInC, Library
from .names import null_name, variable_name
from .values import C_TYPES, Kind, NotNative, Value, Variable, joined


class _Loop:
    """A loop that is being compiled. breaks, continues: what is known of variables where these are."""

    def __init__(self, number: int) -> None:
        self.after = f"after_{number}"
        self.next = f"next_{number}"
        self.breaks: list[dict[str, Variable]] = []
        self.continues: list[dict[str, Variable]] = []


class FunctionCompiler(Expressions):
    """Compiles one function, for arguments of given kinds. declared: the result of a function of the plugin, as its
    annotation has it; None: it is called by another one, and its result is what it returns."""

    def __init__(
        self,
        library: Library,
        definition: ast.FunctionDef,
        arguments: Sequence[Variable],
        declared: Variable | None,
    ) -> None:
        self.definition = definition
        self.parameters = _parameters(definition)
        if len(self.parameters) != len(arguments):
            raise NotNative(f"`{definition.name}` has {len(self.parameters)} parameters", definition.lineno)
        super().__init__(library, Code(library.numbers), local_names(definition))
        self.variables = dict(zip(self.parameters, arguments, strict=True))
        self.arguments = list(arguments)
        self._declared = declared
        self.returns: list[tuple[Variable, int]] = []
        self._loops: list[_Loop] = []

    def compiled(self) -> FunctionInC:
        """The function. Raises NotNative."""
        if self._declared is not None:
            return self._compiled(self._declared)
        self._compiled(Variable(Kind.NONE))  # what the result is shows only once all `return`s are compiled
        return self._compiled(self._found())

    def _found(self) -> Variable:
        """What all `return`s together give."""
        found = self.returns[0][0]
        for other, line in self.returns[1:]:
            found = joined(found, other, "the result")
            if found.unclear:
                raise NotNative(f"the result of `{self.definition.name}` has another kind than before", line)
        return found

    def _compiled(self, expected: Variable) -> FunctionInC:
        entry = dict(self.variables)
        self._expected, self.returns = expected, []
        self.code = Code(self.library.numbers)
        if self.block(_without_documentation(self.definition.body)):
            self._return(None, self.definition.body[-1].end_lineno or self.definition.lineno)
        self.variables = entry
        if not self.returns:  # each row raises
            self.returns.append((Variable(Kind.NONE), self.definition.lineno))
        name = f"native_{self.definition.name}_{next(self.library.numbers)}"
        return FunctionInC(name, expected, self._text(name, expected))

    def _text(self, name: str, returns: Variable) -> str:
        parameters = ["native_arena *arena"]
        for parameter, known in zip(self.parameters, self.arguments, strict=True):
            if known.kind is not Kind.NONE:
                parameters.append(f"{C_TYPES[known.kind]} {variable_name(parameter, known.kind)}")
            self.code.declared.pop(variable_name(parameter, known.kind), None)
            if known.may_be_null:
                parameters.append(f"bool {null_name(parameter)}")
                self.code.declared.pop(null_name(parameter), None)
        out = C_TYPES.get(returns.kind, "bool")
        head = f"static inline native_outcome {name}({', '.join(parameters)}, {out} *out)"
        return f"{head} {{\n{self.code.text()}\ndeferred: NATIVE_UNUSED;\n  return NATIVE_DEFERRED;\n}}\n"

    # ---- Statements: each answers whether the next one can be reached ------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        """Statements one after the other."""
        return all(self._statement(statement) for statement in statements)

    def _statement(self, statement: ast.stmt) -> bool:
        method = getattr(self, f"_{type(statement).__name__.lower()}", None)
        if method is None:
            word = type(statement).__name__.lower()
            raise NotNative(f"`{_WORDS.get(word, word)}`", statement.lineno)
        return bool(method(statement))

    def _pass(self, statement: ast.Pass) -> bool:
        return True

    def _expr(self, statement: ast.Expr) -> bool:
        if not isinstance(statement.value, ast.Constant):
            self.expression(statement.value)
        return True

    def _raise(self, statement: ast.Raise) -> bool:
        if (why := self._raised(statement)) is not None:
            self.code.add(why)
        self.code.add("goto deferred;")
        return False

    def _raised(self, statement: ast.Raise) -> str | None:
        """For libraries without Python: what is raised, if that is one of Python's own errors with a constant text."""
        match statement.exc:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text))], keywords=[]):
                kind = getattr(builtins, name, None) if self.facts.is_builtin(name) else None
                if isinstance(kind, type) and issubclass(kind, Exception) and not self.facts.catches:
                    try:
                        return raised(kind(text))
                    except TypeError:  # it takes more than a text
                        return None
        return None

    def _assert(self, statement: ast.Assert) -> bool:
        condition = self.condition(statement.test)
        self.code.defer_if(f"!({condition.code})")
        self.narrow(condition.when_true)
        return True

    def _try(self, statement: ast.Try) -> bool:
        if statement.finalbody:
            raise NotNative("`finally`", statement.finalbody[0].lineno)
        return self.block(statement.body) and self.block(statement.orelse)

    def _assign(self, statement: ast.Assign) -> bool:
        if len(statement.targets) != 1:
            raise NotNative("several targets of one assignment", statement.lineno)
        return self._assigned(statement.targets[0], statement.value)

    def _annassign(self, statement: ast.AnnAssign) -> bool:
        if statement.value is None:
            return True
        return self._assigned(statement.target, statement.value)

    def _assigned(self, target: ast.expr, expression: ast.expr) -> bool:
        if isinstance(target, ast.Name):
            self.set(target.id, self.expression(expression))
            return True
        if isinstance(target, ast.Tuple | ast.List):
            names = [item for item in target.elts if isinstance(item, ast.Name)]
            if len(names) == len(target.elts):
                values = [self.kept(value) for value in self.several(expression, len(names))]
                for name, value in zip(names, values, strict=True):
                    self.set(name.id, value)
                return True
        raise NotNative(f"the assignment to `{ast.unparse(target)}`", target.lineno)

    def _augassign(self, statement: ast.AugAssign) -> bool:
        if not isinstance(statement.target, ast.Name):
            raise NotNative(f"the assignment to `{ast.unparse(statement.target)}`", statement.lineno)
        before = self.name(statement.target.id, statement.lineno)
        other = self.expression(statement.value)
        self.set(statement.target.id, self.operation(statement.op, before, other, statement.lineno))
        return True

    def _return(self, statement: ast.Return | None, line: int = 0) -> bool:
        line = statement.lineno if statement else line
        expression = statement.value if statement else None
        value = self.expression(expression) if expression else Value(Kind.NONE, "0")
        self.returns.append((Variable(value.kind, value.is_null is not None), line))
        expected = self._expected.kind
        # A float column takes integers; whatever else is returned, Python refuses with its text.
        fits = value.kind in (expected, Kind.NONE) or (expected, value.kind) == (Kind.FLOAT, Kind.INT)
        if self._declared is not None and not fits:
            raise NotNative(f"{value.kind.value} is returned instead of {expected.value}", line)
        if value.kind is Kind.NONE:
            self.code.add("return NATIVE_NULL;")
            return False
        if value.is_null:
            self.code.add(f"if ({value.is_null}) return NATIVE_NULL;")
        if expected is Kind.FLOAT and value.kind is Kind.INT:
            self.code.defer_if(f"!native_is_exact({value.code})")
            self.code.add(f"*out = (double)({value.code});")
        elif expected is value.kind:
            self.code.add(f"*out = {value.code};")
        self.code.add("return NATIVE_VALUE;")
        return False

    def _if(self, statement: ast.If) -> bool:
        condition = self.condition(statement.test)
        entry = dict(self.variables)
        ways = []
        with self.code.block(f"if ({condition.code})"):
            self.narrow(condition.when_true)
            if self.block(statement.body):
                ways.append(self.variables)
        self.variables = dict(entry)
        with self.code.block("else"):
            self.narrow(condition.when_false)
            if self.block(statement.orelse):
                ways.append(self.variables)
        self.variables = self._meet(ways) if ways else entry
        return bool(ways)

    def _meet(self, ways: Sequence[Mapping[str, Variable]]) -> dict[str, Variable]:
        """What is known where several ways come together. A name that one of them does not bind is bound no more."""
        first, *others = ways
        found = dict(first)
        for other in others:
            found = {name: joined(known, other[name], name) for name, known in found.items() if name in other}
        return found

    # ---- Loops -------------------------------------------------------------------------------------------------------

    def _while(self, statement: ast.While) -> bool:
        if statement.orelse:
            raise NotNative("`else` of a loop", statement.orelse[0].lineno)
        endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)

        def once(loop: _Loop) -> None:
            condition = self.condition(statement.test)
            if not endless:
                with self.code.block(f"if (!({condition.code}))"):
                    before = dict(self.variables)
                    self.narrow(condition.when_false)
                    loop.breaks.append(self.variables)
                    self.code.add("break;")
                self.variables = before
                self.narrow(condition.when_true)
            if self.block(statement.body):
                loop.continues.append(self.variables)

        return self._repeated("for (;;)", once)

    def _for(self, statement: ast.For) -> bool:
        if statement.orelse:
            raise NotNative("`else` of a loop", statement.orelse[0].lineno)
        if not isinstance(statement.target, ast.Name):
            raise NotNative("a loop with several variables", statement.lineno)
        name = statement.target.id
        start, stop, step = self._range(statement.iter)
        number = next(self.library.numbers)
        count, position = f"count_{number}", f"position_{number}"
        self.code.add(f"uint64_t {count} = native_range_length({start.code}, {stop.code}, {step});")
        self.code.add(f"int64_t {position} = {start.code};")

        def once(loop: _Loop) -> None:
            loop.breaks.append(dict(self.variables))
            self.set(name, Value(Kind.INT, position))
            if self.block(statement.body):
                loop.continues.append(self.variables)

        # The position is not computed behind the last one, where it might not fit.
        advance = f"{count} > 1 ? ({position} += {step}) : 0, {count}--"
        return self._repeated(f"for (; {count} > 0; {advance})", once)

    def _range(self, expression: ast.expr) -> tuple[Value, Value, int]:
        call = expression if isinstance(expression, ast.Call) else None
        if call is None or not isinstance(call.func, ast.Name) or call.func.id != "range" or call.keywords:
            raise NotNative(f"the loop over `{ast.unparse(expression)}`", expression.lineno)
        self.check_builtin("range", expression.lineno)
        values = [self.kept(self.integer(self.expression(one), one.lineno)) for one in call.args]
        if not 1 <= len(values) <= 3:
            raise NotNative("`range` without numbers", expression.lineno)
        step = 1
        if len(values) == 3:
            stated = values[2].constant
            if not values[2].is_constant or not isinstance(stated, int) or stated == 0:
                raise NotNative("a step of `range` that is not a constant", expression.lineno)
            step = stated
        start = values[0] if len(values) > 1 else Value(Kind.INT, "0")
        return start, values[1] if len(values) > 1 else values[0], step

    def _repeated(self, head: str, once: Callable[[_Loop], None]) -> bool:
        """Compiles a loop until what is known at its begin is what is known at its end. `once` compiles a turn."""
        mark, number = self.code.mark(), next(self.library.numbers)
        begin = dict(self.variables)
        while True:
            loop = _Loop(number)
            self._loops.append(loop)
            self.variables = dict(begin)
            with self.code.block(head):
                self.code.defer_if("--turns == 0")
                once(loop)
                if loop.continues:
                    self.code.add(f"{loop.next}: NATIVE_UNUSED;")
            self._loops.pop()
            again = self._meet([begin, *loop.continues])
            again = {name: again.get(name, known) for name, known in begin.items() if name in again}
            if again == begin:
                break
            begin = again
            self.code.cut(mark)
        self.code.declare("turns", "uint32_t turns = NATIVE_MOST_TURNS;")
        self.code.add(f"{loop.after}: NATIVE_UNUSED;")
        if not loop.breaks:
            return False
        self.variables = self._meet(loop.breaks)
        return True

    def _break(self, statement: ast.Break) -> bool:
        loop = self._loops[-1]
        loop.breaks.append(self.variables)
        self.code.add(f"goto {loop.after};")
        return False

    def _continue(self, statement: ast.Continue) -> bool:
        loop = self._loops[-1]
        loop.continues.append(self.variables)
        self.code.add(f"goto {loop.next};")
        return False


_WORDS = {"asyncfor": "async for", "functiondef": "def", "classdef": "class", "importfrom": "import", "delete": "del"}


def _parameters(definition: ast.FunctionDef) -> list[str]:
    arguments = definition.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise NotNative("parameters with defaults, or any number of them", definition.lineno)
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]


def _without_documentation(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    return body[1:] if ast.get_docstring(ast.Module(list(body), []), clean=False) is not None else body


def local_names(definition: ast.FunctionDef) -> frozenset[str]:
    """The names that are local to a function, because it binds them."""
    found = set(_parameters(definition))
    for statement in definition.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                found.add(node.name)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
    return frozenset(found)


def compiled(
    library: Library, definition: ast.FunctionDef, arguments: Sequence[Variable], declared: Variable | None
) -> FunctionInC:
    """A function for arguments of these kinds; see FunctionCompiler. Raises NotNative."""
    return FunctionCompiler(library, definition, arguments, declared).compiled()
