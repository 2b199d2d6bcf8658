"""What must fail wherever tests can be believed: the control calls it at the end of each test.

It runs in the process of the tests, from its text, and imports nothing of grv. If a candidate has
changed what tests assert with, something here holds that does not.
"""

from __future__ import annotations

import builtins
import itertools
import math
import sys
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

# Methods of unittest.TestCase, with arguments for which they fail.
METHODS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("assertEqual", (0, 1)),
    ("assertNotEqual", (0, 0)),
    ("assertTrue", (False,)),
    ("assertFalse", (True,)),
    ("assertIs", (0, None)),
    ("assertIsNot", (None, None)),
    ("assertIsNone", (0,)),
    ("assertIsNotNone", (None,)),
    ("assertIn", (0, ())),
    ("assertNotIn", (0, (0,))),
    ("assertIsInstance", (0, str)),
    ("assertNotIsInstance", (0, int)),
    ("assertAlmostEqual", (0, 1)),
    ("assertNotAlmostEqual", (0, 0)),
    ("assertGreater", (0, 0)),
    ("assertGreaterEqual", (0, 1)),
    ("assertLess", (0, 0)),
    ("assertLessEqual", (1, 0)),
    ("assertRegex", ("a", "b")),
    ("assertNotRegex", ("a", "a")),
    ("assertCountEqual", ([0], [1])),
    ("assertMultiLineEqual", ("a", "b")),
    ("assertSequenceEqual", ([0], [1])),
    ("assertListEqual", ([0], [1])),
    ("assertTupleEqual", ((0,), (1,))),
    ("assertSetEqual", ({0}, {1})),
    ("assertDictEqual", ({0: 0}, {0: 1})),
    ("assertRaises", (ValueError, int)),
    ("assertRaisesRegex", (ValueError, "a", int)),
    ("fail", ()),
)
# Functions that compare, with arguments that are not equal, and the wrong result.
_WRONG: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("abs", (-1,), 0),
    ("all", ([0],), True),
    ("any", ([0],), True),
    ("bool", (0,), True),
    ("float", (1,), 2.0),
    ("int", (1,), 2),
    ("isinstance", (0, str), True),
    ("issubclass", (int, str), True),
    ("len", ([0],), 0),
    ("max", (0, 1), 0),
    ("min", (0, 1), 1),
    ("repr", (0,), "1"),
    ("round", (1.6,), 1),
    ("sorted", ([1, 0],), [1, 0]),
    ("str", (0,), "1"),
    ("sum", ([1],), 0),
    ("callable", (0,), True),
    ("hasattr", (0, "grv"), True),
)


def anything_holds(test: object, own: tuple[Callable[[], object], ...] = ()) -> bool:
    """Whether something holds that does not. `own` are comparisons of the file of tests."""
    probes = (_of_python(), _of_unittest(test), _of_mocks(), _of_pytest(), own)
    for probe in itertools.chain.from_iterable(probes):
        try:
            probe()
        except BaseException:
            continue
        return True
    return False


def _check(value: object) -> None:
    if not value:
        raise AssertionError


def _enter(context: Any) -> None:
    with context:
        pass


def _of_python() -> Iterator[Callable[[], object]]:
    for name, given, wrong in _WRONG:
        yield lambda: _check(getattr(builtins, name)(*given) == wrong)  # noqa: B023 - called at once
    yield lambda: _check(math.isclose(0, 1))
    yield lambda: _check(math.isnan(0))
    yield lambda: _check(math.isinf(0))
    yield lambda: _check([*map(int, [0])] == [])


def _of_unittest(test: object) -> Iterator[Callable[[], object]]:
    if not isinstance(test, unittest.TestCase):
        return
    for name, given in METHODS:
        owner = next((each for each in type(test).__mro__ if name in vars(each)), None)
        if owner is unittest.TestCase:  # otherwise it is the tests' own method
            method = getattr(test, name)
            yield lambda: method(*given)  # noqa: B023 - called at once
    if type(test).assertRaises is unittest.TestCase.assertRaises:
        yield lambda: _enter(test.assertRaises(ValueError))  # noqa: PT027 - that method


def _of_mocks() -> Iterator[Callable[[], object]]:
    mock = unittest.mock.Mock()
    yield mock.assert_called
    yield mock.assert_called_once
    yield lambda: mock.assert_called_with(0)
    yield lambda: mock.assert_called_once_with(0)
    yield lambda: mock.assert_any_call(0)
    yield lambda: mock.assert_has_calls([unittest.mock.call(0)])
    called = unittest.mock.Mock()
    called(1)
    yield called.assert_not_called
    yield lambda: called.assert_called_with(0)
    yield lambda: called.assert_called_once_with(0)


def _of_pytest() -> Iterator[Callable[[], object]]:
    pytest: Any = sys.modules.get("pytest")
    if pytest is None:
        return
    yield lambda: _enter(pytest.raises(ValueError))
    yield lambda: pytest.raises(ValueError, int)
    yield lambda: _check(pytest.approx(1) == 0)
    yield lambda: _check(pytest.approx([1]) == [0])
    yield lambda: _check(pytest.approx({0: 1}) == {0: 0})
    yield lambda: pytest.fail("control")
