"""What replayed functions could miss: values that change between calls, effects, kinds of arguments."""

from __future__ import annotations

import builtins
import sys
import textwrap
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.runtime.contents import is_plain_record, snapshot

TIMES = 12


pytestmark = pytest.mark.usefixtures("replayed_soon")


HEAD = """
import dataclasses, enum, functools, math, operator, types, typing
import numpy as np, tracer, tracer.numpy as tnp
from functools import partial
"""

WAYS = {
    "kept": "def f(x):\n    return x * ({0})\ndef call():\n    return tracer.grad(f)(3.0)\n",
    "lambda": "def call():\n    return tracer.grad(lambda x: x * ({0}))(3.0)\n",
    "method": "class Of:\n    def m(self, x):\n        return x * ({0})\n"
    "of = Of()\ndef call():\n    return tracer.grad(of.m)(3.0)\n",
}


class Program(NamedTuple):
    """Some names, an expression of them that a function multiplies by, and statements that change what it is."""

    setup: str
    expression: str
    changes: tuple[str, ...]


def program(setup: str, expression: str, *changes: str) -> Program:
    return Program(setup, expression, changes)


PROGRAMS = {
    "two lists become one": program("a = [1.0]; b = [1.0]", "2.0 if a is b else 3.0", "b = a", "b = [1.0]"),
    "two items become one": program("L = [[1.0], [1.0]]", "2.0 if L[0] is L[1] else 3.0", "L[1] = L[0]"),
    "two arrays become one": program("a = np.ones(2); b = np.ones(2)", "2.0 if a is b else 3.0", "b = a"),
    "two objects become one": program(
        "class O:\n    w = 1.0\na = O(); b = O()", "(2.0 if a is b else 3.0) * a.w", "b = a", "b = O()"
    ),
    "objects that equal themselves alone": program(
        "class O:\n    w = 1.0\na = O(); b = O()", "(2.0 if a == b else 3.0) * a.w", "b = a"
    ),
    "two functions become one": program(
        "def make():\n    return lambda v: v\na = make(); b = make()", "(2.0 if a is b else 3.0) * a(1.0)", "b = a"
    ),
    "equal numbers are not one": program("a = 1.5 * 2; b = float('3')", "2.0 if a is b else 3.0", "b = a"),
    "a dict in another order": program(
        "D = {'a': 1.0, 'b': 2.0}", "[*D.values()][0] + 10.0 * [*D.values()][1]", "D['a'] = D.pop('a')"
    ),
    "keys of another sign": program(
        "D = {0.0: 1.0}", "math.copysign(1.0, [*D][0])", "D.clear(); D[-0.0] = 1.0"
    ),
    "nodes in a list": program(
        "K = 2.0\nclass Node:\n    def m(self):\n        return K\n"
        "tracer.tree_util.register_pytree_node(Node, lambda n: ((), None), lambda a, c: Node())\nL = [Node()]",
        "L[0].m()", "K = 5.0", "L[0].m = lambda: 9.0",
    ),
    "keywords of a partial function": program(
        "def g(v, by=1.0):\n    return v * by\np = partial(g, by=2.0)", "p(1.0)", "p.keywords['by'] = 5.0",
        "p.__setstate__((g, (), {'by': 7.0}, {}))",
    ),
    "a function of a library": program(
        "was = np.hypot", "float(np.hypot(3.0, 4.0))", "np.hypot = math.atan2", "np.hypot = was"
    ),
    "Python's own function": program(
        "import builtins; was = abs", "abs(-2.0)", "builtins.abs = lambda v: 7.0", "builtins.abs = was"
    ),
    "a named tuple's class": program(
        "P = typing.NamedTuple('P', [('a', float)]); p = P(2.0)", "p.a", "P.a = property(lambda self: 8.0)"
    ),
    "methods of named tuples": program(
        "K = 2.0\nclass P(typing.NamedTuple):\n    a: float\n    def m(self):\n        return self.a * K\np = P(2.0)",
        "p.m()", "K = 3.0",
    ),
    "methods of dataclasses": program(
        "K = [1]\n@dataclasses.dataclass\nclass O:\n    a: float = 2.0\n    def __eq__(self, other):\n"
        "        return K[0] == 1\no = O(); p = O()", "o.a * (2.0 if o == p else 3.0)", "K[0] = 2",
    ),
    "an enumeration's attributes": program(
        "class E(enum.Enum):\n    A = 1\nk = E.A; k.more = 2.0", "k.more", "k.more = 3.0", "del k.more; E.more = 4.0"
    ),
    "an enumeration's class": program("class E(enum.Enum):\n    A = 1\nk = E.A\nE.n = 2.0", "k.n", "E.n = 3.0"),
    "an enumeration's value": program("class E(enum.Enum):\n    A = 1\nk = E.A", "float(k.value)", "k._value_ = 3"),
    "a number of a class of the user's": program(
        "K = 2.0\nclass S(np.float64):\n    def g(self):\n        return K\na = S(2.0)", "a.g()", "K = 3.0"
    ),
    "a record of NumPy's": program(
        "b = np.zeros(2, dtype=[('q', 'f8')]); a = b[0]", "float(a['q'])", "b['q'][0] = 2.0", "a['q'] = 4.0"
    ),
    "bounds of a slice": program(
        "i = np.asarray(1); s = slice(0, i); a = tnp.arange(4.0)", "tnp.sum(a[s])", "i[...] = 3"
    ),
    "text of an array": program(
        "a = np.asarray([1.23456789]); form = '%s'", "float(len(form % a)) + len(str(a)) + len(f'{a}')",
        "np.set_printoptions(precision=3)", "np.set_printoptions(precision=8)",
    ),
    "text by NumPy": program(
        "a = np.asarray([1.23456789])", "float(len(np.array_str(a)))",
        "np.set_printoptions(precision=3)", "np.set_printoptions(precision=8)",
    ),
    "text of an object": program(
        "K = 'a'; form = '%s'\nclass O:\n    w = 1.0\n    def __str__(self):\n        return K\no = O()",
        "float(len(form % o)) * o.w", "K = 'abc'",
    ),
    "where numbers lie": program("a = np.ones((2, 2))", "float(a.strides[0])", "a = np.asfortranarray(a)"),
    "whose memory it is": program(
        "a = np.ones(4); b = np.ones(4)", "2.0 if np.shares_memory(a, b) else 3.0", "b = a[:]"
    ),
    "flags": program("a = np.ones(2)", "2.0 if a.flags.writeable else 3.0", "a.flags.writeable = False"),
    "what NumPy does with errors": program(
        "z = np.zeros(1); was = np.geterr()", "float(np.size(1.0 / z))", "np.seterr(all='raise')", "np.seterr(**was)"
    ),
    "a function of several classes": program(
        "@functools.singledispatch\ndef g(v):\n    return 1.0", "g(2.0)", "g.register(float, lambda v: 5.0)"
    ),
    "defaults where there were none": program(
        "def g(v, by):\n    return v * by\ndef h(v):\n    try:\n        return g(v)\n    except TypeError:\n"
        "        return 9.0", "h(1.0)", "g.__defaults__ = (3.0,)", "g.__kwdefaults__ = {}",
    ),
    "attributes of a function under another name": program(
        "def g(v):\n    return v\ndef h():\n    q = g\n    try:\n        return q.r\n    except AttributeError:\n"
        "        return 1.0", "h()", "g.r = 3.0", "del g.r",
    ),
    "a function's name": program(
        "def g(v):\n    return v\ndef h():\n    q = g\n    return float(len(q.__name__))", "h()",
        "g.__name__ = 'abcdef'",
    ),
    "a module that makes names": program(
        "V = [2.0]; M = types.ModuleType('m'); M.__getattr__ = lambda name: V[0]", "M.rate", "V[0] = 3.0",
        "M.rate = 5.0",
    ),
    "a module of another class": program(
        "V = [2.0]\nclass M(types.ModuleType):\n    @property\n    def rate(self):\n        return V[0]\n"
        "m = M('m'); vars(m)['rate'] = 9.0", "m.rate", "V[0] = 3.0",
    ),
    "special methods that are objects": program(
        "L = [1]\nclass Length:\n    def __call__(self):\n        return len(L)\n"
        "class O:\n    w = 1.0\n    __len__ = Length()\no = O()", "len(o) * o.w", "L.append(1)",
    ),
    "special methods that remember": program(
        "L = [1]\nclass O:\n    w = 1.0\n    @functools.lru_cache\n    def __len__(self):\n        return len(L)\n"
        "o = O()", "len(o) * o.w", "L.append(1); O.__len__.cache_clear()",
    ),
    "special methods made of others": program(
        "L = [1]\nclass O:\n    w = 1.0\n    def add(self, q, b):\n        return b * len(L)\n"
        "    __add__ = functools.partialmethod(add, 1)\no = O()", "(o + 2.0) * o.w", "L.append(1)",
    ),
    "a list in itself": program("L = [1.0]; L.append(L)", "float(len(L))", "L.append(1.0)"),
    "a deep list": program("L = [1.0]\nfor _ in range(400):\n    L = [L]", "float(len(L))", "L = [L, L]"),
    "a long chain of objects": program(
        "class O:\n    pass\no = O(); o.w = 1.0; o.n = None\n"
        "for _ in range(400):\n    p = O(); p.n = o; p.w = 2.0; o = p",
        "o.w * (1.0 if o.n is None else 2.0)", "o.w = 3.0",
    ),
}  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return np.asarray(call()).tobytes()
    except Exception as error:
        return type(error)


def by_python(call: Callable[[], Any]) -> Any:
    """What running the functions gives: debuggers see them run."""
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        return outcome(call)
    finally:
        sys.settrace(before)


def module_of(source: str, monkeypatch: pytest.MonkeyPatch, file: str) -> ModuleType:
    module = ModuleType("changing")
    monkeypatch.setitem(sys.modules, "changing", module)
    exec(compile(HEAD + source, file, "exec"), vars(module))
    return module


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_between_calls_is_seen(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, expression, changes = PROGRAMS[name]
    for owner, attribute in ((np, "hypot"), (builtins, "abs")):
        monkeypatch.setattr(owner, attribute, getattr(owner, attribute))  # put back afterwards
    for file in ("<string>", __file__):  # as `python -c` has it
        module = module_of(f"{setup}\n{WAYS[way].format(expression)}", monkeypatch, file)
        with warnings.catch_warnings(), np.errstate(), np.printoptions():
            warnings.simplefilter("ignore")
            for change in ("", *changes):
                exec(change, vars(module))
                expected = by_python(module.call)
                assert [outcome(module.call) for _ in range(TIMES)] == [expected] * TIMES, change


@pytest.mark.parametrize(
    "expression",
    ["np.load(path)[0]", "np.fromfile(path, offset=128)[0]", "np.memmap(path, dtype='f8', offset=128)[0]"],
)
@pytest.mark.parametrize("way", WAYS)
def test_files_are_read_every_time(expression: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    path = str(tmp_path / "numbers.npy")
    np.save(path, np.full(2, 1.0))
    module = module_of(f"path = {path!r}\n{WAYS[way].format(f'float({expression})')}", monkeypatch, __file__)
    assert [float(module.call()) for _ in range(TIMES)] == [1.0] * TIMES
    np.save(path, np.full(2, 3.0))
    assert float(module.call()) == 3.0


# What happens at every run

EFFECTS = {
    "a list grows under another name": "l = L; l += [1]",
    "an attribute grows": "l = o.l; l += [1]",
    "setitem": "setitem(L, slice(len(L), None), [1])",
    "iadd": "iadd(L, [1])",
    "NumPy's array grows": "b = a; b += 1",
    "a result's place": "np.add(a, 1, a)",
    "put": "put(a, 0, a[0] + 1)",
    "keywords": "np.add(a, 1, **K)",
    "a warning": "z.astype(np.float64)",
    "arithmetic": "1.0 / np.zeros(1)",
    "a file": "a.tofile(path); L.extend([1])",
    "options of text": "np.set_printoptions(edgeitems=np.get_printoptions()['edgeitems'] + 1)",
}


@pytest.mark.parametrize("way", ["kept", "lambda", "method"])
@pytest.mark.parametrize("name", EFFECTS)
def test_what_a_function_does_happens_once_at_every_call(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    body = textwrap.indent(f"    {EFFECTS[name]}\nreturn x\n".replace("    ", "", 1), "    ")
    setup = f"from operator import setitem, iadd\nfrom numpy import put\npath = {str(tmp_path / 'x')!r}\n"
    setup += "class O:\n    pass\nL = []; o = O(); o.l = []; a = np.zeros(1); K = {'out': a}; z = np.ones(1) * 1j\n"
    setup += f"def f(x):\n{body}"
    call = {"kept": "f", "lambda": "lambda x: 1.0 * f(x)", "method": "of.m"}[way]
    setup += "class Of:\n    def m(self, x):\n        return f(x)\nof = Of()\n"
    module = module_of(f"{setup}def call():\n    return tracer.grad({call})(3.0)\n", monkeypatch, __file__)
    with warnings.catch_warnings(record=True) as given, np.printoptions(edgeitems=3):
        warnings.simplefilter("always")

        def count() -> float:
            edge = np.get_printoptions()["edgeitems"] - 3
            return len(module.L) + len(module.o.l) + float(module.a[0]) + len(given) + edge

        for n in range(1, TIMES):
            module.call()
            assert count() == n


# Arguments


def test_dicts_are_seen_in_their_order_and_results_have_it() -> None:
    def weighted(d: Any) -> Any:
        found = 0.0
        for key in d:
            found = found * 3.0 + d[key] * (2.0 if isinstance(key, bool) else 1.0)
        return found

    derivative = tracer.value_and_grad(weighted)
    for _ in range(TIMES):
        for given, expected in (
            ({"a": 1.0, "b": 2.0}, 5.0), ({"b": 2.0, "a": 1.0}, 7.0), ({1: 1.0}, 1.0), ({True: 1.0}, 2.0),
        ):  # fmt: skip
            arrays = {key: tnp.asarray(value) for key, value in given.items()}
            value, slopes = derivative(arrays)
            assert float(value) == expected
            assert [*map(repr, slopes)] == [*map(repr, given)]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_arrays_of_numpys_that_a_function_sees_are_not_taken_for_ours() -> None:
    def told(x: Any, y: Any) -> Any:
        return x * tnp.sum(tnp.asarray(y)) * (2.0 if isinstance(y, np.ndarray) else 3.0)

    def counted(x: Any, y: Any) -> Any:
        y += 1.0
        return x

    def squared(x: Any, y: Any) -> Any:
        return x * tnp.sum(tnp.asarray(y * y))

    ours, numpys = tnp.ones((2, 2)), np.ones((2, 2))
    for _ in range(TIMES):
        assert float(tracer.grad(told)(1.0, ours)) == 12.0
        assert float(tracer.grad(told)(1.0, numpys)) == 8.0
        assert float(tracer.grad(squared)(1.0, numpys)) == 4.0
        assert float(tracer.grad(squared)(1.0, numpys.view(np.matrix))) == 8.0  # products of matrices
    for n in range(TIMES):
        assert numpys[0, 0] == 1.0 + n
        tracer.grad(counted)(1.0, numpys)


def test_results_are_never_the_memory_of_numpys_arrays() -> None:
    def same(x: Any) -> Any:
        return x

    for _ in range(TIMES):
        given = np.ones(2)
        results = [tracer.vmap(same)(given), tracer.vmap(lambda x: x)(given)]
        results.append(lax.scan(lambda c, x: (c, x), 0.0, given)[1])
        given[0] = 5.0
        assert [float(result[0]) for result in results] == [1.0, 1.0, 1.0]


class Equal:
    """Equal to all of its kind."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x * self.by

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_equal_objects_are_called_each_for_itself() -> None:
    for _ in range(TIMES):
        for by in (2.0, 3.0):
            assert float(lax.cond(False, scaled, Equal(by), 1.0)) == by


def scaled(x: Any) -> Any:
    return x


def test_snapshots_tell_kinds_of_keys() -> None:
    held: dict[Any, Any] = {1: [1.0, (2.0, None)]}
    found = snapshot(held)
    assert found.holds()
    held[True] = held.pop(1)
    assert not found.holds()
    held.clear()
    held[1] = [1.0, (2.0, None)]
    assert found.holds()
    held[1][0] = -1.0
    assert not found.holds()
    held[1] = held
    assert not found.holds()


def test_named_tuples_with_methods_are_not_plain() -> None:
    class Plain(NamedTuple):
        a: float

    assert is_plain_record(Plain)
    assert not is_plain_record(type("Derived", (Plain,), {}))


class _Loud(ModuleType):
    """Modules whose names are not what their dicts say."""

    def __getattribute__(self, name: str) -> Any:
        return 7.0 if name == "scale" else super().__getattribute__(name)


@pytest.mark.parametrize("how", ["grad", "made", "vmap", "jvp"])
def test_modules_that_get_another_class_are_read_again(how: str) -> None:
    module = ModuleType("of_a_user")
    vars(module)["scale"] = 2.0

    def scaled(x: Any) -> Any:
        return x * module.scale

    kept = tracer.grad(scaled)
    call = {
        "grad": lambda: kept(3.0),
        "made": lambda: tracer.grad(lambda x: x * module.scale)(3.0),
        "vmap": lambda: tracer.vmap(scaled)(tnp.asarray([1.0]))[0],
        "jvp": lambda: tracer.jvp(scaled, (3.0,), (1.0,))[1],
    }[how]
    for _ in range(TIMES):
        assert float(call()) == 2.0
    module.__class__ = _Loud
    assert float(call()) == 7.0
    module.__class__ = ModuleType
    assert float(call()) == 2.0


@pytest.mark.parametrize("how", ["grad", "made", "vmap", "nested"])
def test_named_tuples_whose_class_gets_properties_are_read_again(how: str) -> None:
    class Pair(NamedTuple):
        x: Any
        y: Any

    def first(pair: Any) -> Any:
        return (pair.x * 2.0).sum()

    kept, pair = tracer.grad(first), Pair(tnp.ones(2), tnp.ones(2))
    call = {
        "grad": lambda: kept(pair).x[0],
        "made": lambda: tracer.grad(lambda pair: (pair.x * 2.0).sum())(pair).x[0],
        "vmap": lambda: tracer.vmap(first)(Pair(tnp.ones((1, 1)), pair.y[:1]))[0],
        "nested": lambda: tracer.grad(lambda pairs: first(pairs[0]))([pair])[0].x[0],
    }[how]
    for _ in range(TIMES):
        assert float(call()) == 2.0
    Pair.x = property(lambda pair: pair[0] * 10.0)  # type: ignore[assignment]
    assert float(call()) == (20.0 if how == "vmap" else 200.0)  # of a derivative, the attribute is ten times the leaf
