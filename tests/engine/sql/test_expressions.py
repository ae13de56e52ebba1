"""The tree of an expression: its parts, and what it knows of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from arroyo_udf_plugin.engine.datafusion.tokens import tokens
from arroyo_udf_plugin.engine.planner.expressions import CallExpression, Case, Expression, Group, Operation, conjuncts
from arroyo_udf_plugin.engine.planner.parsing import parsed
from arroyo_udf_plugin.engine.planner.text import Text, Wrong

FUNCTIONS = {"f": SimpleNamespace(is_once=True), "ticket": SimpleNamespace(is_once=False)}


def tree(text: str) -> Expression:
    return parsed(tokens(text))


def shown(node: Expression) -> str:
    """With brackets around each operation."""
    inner = [shown(child) for child in node.children]
    if isinstance(node, Operation):
        return f"({' '.join([node.operators[0], *inner])})"
    if isinstance(node, CallExpression | Case):
        return f"{node.name if isinstance(node, CallExpression) else 'case'}({', '.join(inner)})"
    if isinstance(node, Group):
        return f"[{', '.join(inner)}]"
    return " ".join(token.text for token in node.part)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b * c - d", "(- (+ a (* b c)) d)"),
        ("a OR b AND NOT c = d", "(or a (and b (not (= c d))))"),
        ("a BETWEEN b AND c AND d", "(and (between a b c) d)"),
        ("a NOT BETWEEN b + 1 AND c OR d", "(or (between a (+ b 1) c) d)"),
        ("a IS NOT NULL AND b IS DISTINCT FROM c", "(and (is a) (is b c))"),
        ("a NOT IN (1, 2) AND b LIKE 'x' ESCAPE '!'", "(and (in a [1, 2]) (like b 'x'))"),
        ("-a::int + CAST(b AS DECIMAL(10, 2))", "(+ (- (:: a)) cast(b))"),
        ("CASE a WHEN 1 THEN b ELSE CASE WHEN c THEN d END END", "case(a, 1, b, case(c, d))"),
        ("f(a)[1].x", "[[f(a), 1]]"),
        ('t.a.b || "Q".c', '(|| t . a . b "Q" . c)'),
        ("extract(hour FROM t) > substring(x FROM 2 FOR y)", "(> extract(t) substring([x, 2, y]))"),
        ("sum(DISTINCT a ORDER BY b DESC) FILTER (WHERE c > 1)", "sum(a, b, (> c 1))"),
        ("row_number() OVER (PARTITION BY a, b ORDER BY c DESC ROWS 1 PRECEDING)", "row_number(a, b, c)"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "percentile_cont(0.5, a)"),
        ("t AT TIME ZONE 'UTC' < now() - INTERVAL '1' DAY", "(< (at t 'UTC') (- now() INTERVAL '1' DAY))"),
        ("value -> 'a' ->> 'b' = 'c'", "(= (->> (-> value 'a') 'b') 'c')"),
        ("{'a': b, 'c': [d, e]}", "[(: 'a' b), (: 'c' [d, e])]"),
        ("date '2013-01-01' < a AND true", "(and (< date '2013-01-01' a) true)"),
    ],
)
def test_a_tree_binds_as_sql_does(text: str, wanted: str) -> None:
    assert shown(tree(text)) == wanted


@pytest.mark.parametrize("text", ["a +", "a b c", "a ~~~ b", "CASE WHEN THEN END", "IN (a)", "* / f(a)", "a BETWEEN b"])
def test_what_is_not_known_is_no_error(text: str) -> None:
    assert tree(text).text(Text("", text), {}) == text


@pytest.mark.parametrize("text", ["f(a", "CASE WHEN a THEN b"])
def test_what_has_no_end_is_wrong(text: str) -> None:
    with pytest.raises(Wrong):
        tree(text)


def test_each_node_has_its_range() -> None:
    text = "f( a +b ) /* c */ > CASE WHEN x THEN g(y, z.q) END"
    nodes = [text[node.start : node.end] for node in tree(text).nodes()]
    wanted = [text, "f( a +b )", "a +b", "a", "b", "CASE WHEN x THEN g(y, z.q) END", "x", "g(y, z.q)", "y", "z.q"]
    assert nodes == wanted


def test_a_text_is_the_users_own_with_others_in_some_places() -> None:
    text = "upper( f(a)) /* x */ ||  b"
    node = tree(text)
    (call,) = node.calls_of({"f"})
    column = next(one for one in node.columns if one.path == ("b",))
    assert node.text(Text("", text), {call: "__r1", column: '"c"'}) == 'upper( __r1) /* x */ ||  "c"'


@pytest.mark.parametrize(
    ("text", "may_fail"),
    [
        ("a + b * c", False),
        ("a / b", True),
        ("a / 2 % 3", False),
        ("a / 0", True),
        ("a / 0.0", True),
        ("a::text || CAST(b AS VARCHAR)", False),
        ("a::bigint", True),
        ("CAST('2013-01-01' AS DATE)", False),
        ("upper(a) LIKE 'x%' AND b IN (1, 2)", False),
        ("to_timestamp(a)", True),
        ("CASE WHEN a THEN b / c END", True),
        ("a ~ '^x'", False),
        ("a ~ b", True),
    ],
)
def test_what_may_fail(text: str, may_fail: bool) -> None:
    assert tree(text).may_fail == may_fail


@pytest.mark.parametrize(
    ("text", "volatile"),
    [
        ("a + f(b)", False),
        ("a + ticket(b)", True),
        ("random() < 0.5", True),
        ("CASE WHEN a THEN uuid() END", True),
        ("current_timestamp - b", True),
        ("t.now", False),
        ("'random()'", False),
    ],
)
def test_what_is_volatile(text: str, volatile: bool) -> None:
    assert tree(text).is_volatile(FUNCTIONS) == volatile


def test_columns_are_names_and_nothing_else() -> None:
    text = "CASE WHEN a IS NULL THEN t.b ELSE CAST(\"C d\" AS BIGINT) END + interval '1 day' + extract(day FROM e)"
    assert [column.path for column in tree(text).columns] == [("a",), ("t", "b"), ("C d",), ("e",)]


def test_conjuncts_are_the_operands_of_and_in_brackets_too() -> None:
    text = "(a AND (b OR c)) AND d BETWEEN 1 AND 2 AND NOT (e AND f)"
    assert [text[one.start : one.end] for one in conjuncts(tree(text))] == [
        "a",
        "(b OR c)",
        "d BETWEEN 1 AND 2",
        "NOT (e AND f)",
    ]


def test_equal_expressions_have_the_same_normal_text() -> None:
    one = tree("f( A+1 ,((b))) -- x\n")
    assert one.normal({}) == tree('f("a" + 1, (b))').normal({})
    assert one.normal({}) != tree("f(a + 2, (b))").normal({})
    assert tree("'a'").normal({}) != tree("a").normal({})
