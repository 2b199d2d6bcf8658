"""Equal keys mean equal behaviour; layout and comments do not change a key."""

from __future__ import annotations

import ast

import pytest

from grv.backends.verifiers.programs.keys import key
from grv.backends.verifiers.programs.reading import find
from grv.backends.verifiers.programs.syntax import Program, parse


def same(one: str, other: str) -> bool:
    return key(parse(one)) == key(parse(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    return x + 1\n", "# c\ndef f(x):\n\n  return (x+1)  # more\n"),
        ("x = 'a'", 'x = u"a"'),
        ("x = 'ab'", "x = 'a' 'b'"),
        ("x = 1000", "x = 1_000"),
        ("x = 1; y = 2", "x = 1\n\n\ny = 2"),
        ("import sys\nprint(sys.stdin.read())", "import sys\n\n# read\nprint(sys.stdin.read())"),
        ("print('{:.2f}'.format(1))", "# two digits\nprint('{:.2f}'.format(1))"),
        ("class A:\n  x = 1", "\nclass A:\n    x = 1"),
        ("class A(dict):\n  x = 1", "\nclass A(dict):\n    x = 1"),
        (
            "try:\n  f()\nexcept ValueError as e:\n  print(e)",
            "try: f()\nexcept ValueError as e: print(e)",
        ),
    ],
)
def test_layout_and_comments_do_not_change_the_key(one: str, other: str) -> None:
    assert same(one, other)


# The second program of each pair behaves differently, or may.
PAIRS = [
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 'a'", "x = b'a'"),
    ("x = a + b", "x = b + a"),
    ("x = 0.0", "x = -0.0"),
    ("f'{x=}'", "f'{x = }'"),
    # names
    ("def f(x): return x", "def f(y): return y"),
    ("def f(*, x): return x", "def f(*, y): return y"),
    ("f = lambda x: x", "f = lambda y: y"),
    ("class A: pass", "class B: pass"),
    ("import math as m", "import math as n"),
    # docstrings
    ("def f():\n  'a'", "def f():\n  'b'"),
    ("def f():\n  'a'\n  return 1", "def f():\n  return 1"),
    ("def f(): pass", "def f():\n  'doc'"),
    ("class A:\n  'a'\n  x = 1", "class A:\n  'b'\n  x = 1"),
    ("'a'\nx = 1", "'b'\nx = 1"),
    # annotations
    ("def f(x: int): pass", "def f(x: str): pass"),
    ("def f() -> int: pass", "def f() -> str: pass"),
    ("x: int = 1", "x: str = 1"),
    ("x: int = 1", "(x): int = 1"),
    # an encoding, which a file may declare
    ("x = 'é'", "# coding: latin-1\nx = 'é'"),
    ("# coding: utf-8\nx = 'é'", "# coding: latin-1\nx = 'é'"),
    (
        "#!python\n# vim: fileencoding=utf-8 :\nx = 'é'",
        "#!python\n# vim: fileencoding=ascii :\nx = 'é'",
    ),
]

# Programs that observe the line of a statement, or might.
PLACED = [
    "import sys\nsys._getframe().f_lineno",
    "import inspect\nx = 1",
    "from traceback import format_exc",
    "import warnings\nwarnings.warn('a')",
    "eval('f.__code__.co_firstlineno')",
    "print(f.__code__.co_firstlineno)",
    "print('{0.__code__.co_firstlineno}'.format(f))",
    "s = '{0.__code__}'\nprint(s.format(f))",
    "print(str.format(s, f))",
    "print(s.format_map(d))",
    "try: f()\nexcept E as e: g(e.__traceback__)",
    "class M(type):\n  def __init__(c, *a): print(a)\nclass A(metaclass=M): pass",
    "class B:\n  def __init__(s, *a): print(a)\nb = B()\nclass A(b): pass",
    "class object:\n  def __init__(s, *a): print(a)\nobject = object()\nclass A(object): pass",
    "import sys\nprint(sys.exc_info())",
    "import sys\nsys.stderr = Mine()",
    "import logging\nlogging.error('a')",
    "from __future__ import annotations\nimport x",
    "match a:\n  case B(c): pass",
    "async def f(): pass\nf().cr_frame",
    "def g(): yield\ng().gi_frame.f_lineno",
]


@pytest.mark.parametrize("program", PLACED)
def test_the_key_contains_the_positions_if_a_program_may_observe_them(program: str) -> None:
    assert not parse(program).error
    assert not same(program, f"\n{program}")


def test_the_key_contains_columns_too() -> None:
    end = "\nprint(x.__code__.co_positions())"
    assert not same(f"x = lambda: 1{end}", f"x =  lambda: 1{end}")


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_programs_that_may_behave_differently_have_different_keys(one: str, other: str) -> None:
    assert not parse(one).error
    assert not parse(other).error
    assert not same(one, other)


def test_the_key_of_a_text_that_does_not_parse_is_its_text() -> None:
    assert key(find("no program")).startswith("text:")
    assert not same("no program", "no  program")
    assert key(Program("x = '\ud800'")).startswith("text:")


def test_the_tree_of_the_program_is_left_as_it_was() -> None:
    program = parse('def f():\n    "doc"\n')
    assert program.tree is not None
    before = ast.dump(program.tree)
    key(program)
    assert ast.dump(program.tree) == before
