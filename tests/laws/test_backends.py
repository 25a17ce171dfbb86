"""Laws: LLVM computes what the array reference does, for every dtype; equal bits at every width of vectors, and by
the interpreter of loop IR.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from tests.laws.cases import Case, cases_of, covering_cases, kinds, large_cases_of, longest, with_all_kinds
from tests.laws.comparing import check_case, check_close
from tests.laws.machines import WIDTHS, Native, Width, run_loops, together
from tests.laws.sampling import THOROUGH, generator, primitives_with, sampled
from tests.laws.tolerances import Tolerance
from tests.laws.values import Array
from tests.targets import TINY
from tracer.codegen.llvm.toolchain.target import preferred_bits
from tracer.ir.primitive import Compare, Composite, Library, NoRule, Pointwise, Primitive
from tracer.ir.types import ArrayType, size
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.primitives.catalogue import CATALOGUE
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

OTHER = tuple(bits for bits in WIDTHS if bits not in (None, preferred_bits()))
LONG = 32  # elements of an operand or result that fill the widest vectors, of whatever dtype


@cache
def covered(name: str) -> tuple[Case, ...]:
    """The cases of a primitive that are compiled."""
    return covering_cases(cases_of(name))


@cache
def long_cases(name: str) -> tuple[Case, ...]:
    """The cases that are long enough for vectors; all where none is."""
    return tuple(case for case in covered(name) if longest(case) >= LONG) or covered(name)


Dealt = tuple[tuple[Case, ...], Scheduled, Sequence[Width]]


@lru_cache(maxsize=2)
def dealt(primitive: Primitive) -> tuple[Dealt, ...]:
    """Long cases as programs, each with widths of vectors besides this machine's own at which it is tried.

    The cases of a dtype have one of the widths, which differs from primitive to primitive, and so has each case where
    dtypes are fewer than widths. Of many dtypes one width is tried, in turn; thoroughly, all at every width.
    """
    cases = long_cases(primitive.name)
    if THOROUGH:
        return ((cases, scheduled(cases), OTHER),)
    turn, dtypes = CATALOGUE.index(primitive), dtypes_in(cases)
    few = len(dtypes) < len(OTHER)
    shares: list[list[Case]] = [[] for _ in OTHER]
    for number, case in enumerate(cases):
        shares[(turn + (number if few else dtypes.index(dtypes_of(case)))) % len(OTHER)].append(case)
    tried = [(tuple(share), (bits,)) for share, bits in zip(shares, OTHER, strict=True) if share]
    chosen = tried if few else [tried[turn // 2 % len(tried)]]
    return tuple((share, scheduled(share), widths) for share, widths in chosen)


def dtypes_of(case: Case) -> tuple[object, ...]:
    """The dtypes of the operands."""
    return tuple(type.dtype if isinstance(type, ArrayType) else type for type in case.types)


def dtypes_in(cases: Sequence[Case]) -> list[tuple[object, ...]]:
    """The choices of dtypes, in the order of their first cases."""
    return list(dict.fromkeys(map(dtypes_of, cases)))


def scheduled(cases: Sequence[Case]) -> Scheduled:
    """The cases as one program."""
    return schedule(optimize(together([case.program for case in cases])))


@lru_cache(maxsize=2)
def interpreted(primitive: Primitive) -> tuple[tuple[Case, ...], Scheduled]:
    """The cases to interpret, and them as one program."""
    cases = interpreted_cases(primitive.name)
    return cases, scheduled(cases)


@lru_cache(maxsize=2)
def compiled(primitive: Primitive) -> tuple[tuple[tuple[Case, ...], Native], ...]:
    """All of a primitive's cases as programs: those for other widths and those to interpret as there, and the rest."""
    programs = [(cases, program) for cases, program, _ in dealt(primitive)]
    if interpreted_cases(primitive.name):
        programs.append(interpreted(primitive))
    met = {case for cases, _ in programs for case in cases}
    rest = tuple(case for case in covered(primitive.name) if case not in met)
    programs += [(rest, scheduled(rest))] if rest else []
    return tuple((cases, Native(program)) for cases, program in programs)


@lru_cache(maxsize=2)
def compiled_for_widths(primitive: Primitive) -> tuple[tuple[tuple[Case, ...], Width, Native], ...]:
    """Long cases as programs for other widths of vectors than this machine's own."""
    return tuple((cases, bits, Native(program, bits)) for cases, program, widths in dealt(primitive) for bits in widths)


@lru_cache(maxsize=4)
def ran(primitive: Primitive, seed: int) -> dict[Case, tuple[list[Array], list[Array]]]:
    """Operands of every case, and its results by `compiled`."""
    found = {}
    for cases, program in compiled(primitive):
        values = drawn(cases, seed)
        results = split(program.run([x for xs in values for x in xs]), cases)
        found |= dict(zip(cases, zip(values, results, strict=True), strict=True))
    return found


def drawn(cases: Sequence[Case], seed: int) -> list[list[Array]]:
    return [case.draw(generator(seed, case)) for case in cases]


def split(results: Sequence[Array], cases: Sequence[Case]) -> list[list[Array]]:
    """The results of one program for all, case by case."""
    left = iter(results)
    return [[next(left) for _ in case.program.outputs] for case in cases]


@primitives_with(lambda p: not isinstance(p.lower, NoRule), "llvm")
@sampled(3)
def test_llvm_is_the_reference(primitive: Primitive, seed: int) -> None:
    for case, (values, got) in ran(primitive, seed).items():
        check_case(case, values, got, run_reference(case.program, values))


@primitives_with(lambda p: not isinstance(p.lower, NoRule), "llvm")
@sampled(1)
def test_bits_do_not_depend_on_the_width_of_vectors(primitive: Primitive, seed: int) -> None:
    own = ran(primitive, seed)
    for cases, bits, program in compiled_for_widths(primitive):
        flat = [x for case in cases for x in own[case][0]]
        for case, got in zip(cases, split(program.run(flat), cases), strict=True):
            values, expected = own[case]
            for a, b in zip(got, expected, strict=True):
                check_close(a, b, None, f"{case}: {bits} bits against this machine's own", values)


@cache
def shared_cases(primitive: Primitive) -> tuple[Case, ...]:
    """The cases that threads share: large ones, long ones with the other dtypes, and a sixth of the rest.

    Elements that do not depend on each other are shared in one way, whichever dtype: of either a third, in turn.
    Thoroughly, all.
    """
    cases, large = long_cases(primitive.name), covering_cases(large_cases_of(primitive.name))
    if THOROUGH:
        return (*cases, *large)
    met = {kind for case in large for kind in kinds(case)}
    others = [case for case in with_all_kinds(cases) if not kinds(case) <= met]
    rest = [case for case in cases if case not in others]
    if isinstance(primitive.lower, Pointwise | Compare | Composite):
        turn = CATALOGUE.index(primitive) % 3
        large, others = large[turn::3] or large, others[turn::3] or others
    return (*large, *others, *rest[::6])


@lru_cache(maxsize=2)
def compiled_shared(primitive: Primitive) -> Native:
    """These cases as one program, every nest shared by threads, however little it does."""
    return Native(schedule(optimize(together([case.program for case in shared_cases(primitive)])), TINY))


@primitives_with(lambda p: not isinstance(p.lower, NoRule), "llvm")
@sampled(1)
def test_bits_do_not_depend_on_the_number_of_threads(primitive: Primitive, seed: int) -> None:
    cases, program = shared_cases(primitive), compiled_shared(primitive)
    values = drawn(cases, seed)
    flat = [x for xs in values for x in xs]
    with_threads = []
    for count in (1, 2, 3):
        with config.using(threads=count):
            with_threads.append(program.run(flat))
    alone, *others = with_threads
    for case, xs, expected, *found in zip(
        cases, values, split(alone, cases), *(split(results, cases) for results in others), strict=True
    ):
        check_case(case, xs, expected, run_reference(case.program, xs))
        for got in found:
            for a, b in zip(got, expected, strict=True):
                check_close(a, b, None, f"{case}: threads against one", xs)


BY_LIBRARY = Tolerance(16, "NumPy stands for the library's routine, and sums in its own order", absolute=256)
OF_PRODUCTS = ("conv", "pinv", "lstsq")  # composites, in which NumPy stands for BLAS
SMALL = 40  # elements in all of a case that is interpreted for more than its dtypes
MANY = 1000 if THOROUGH else 10  # cases of a primitive that are interpreted, unless its dtypes need more


def elements(case: Case) -> int:
    return sum(map(size, (*case.program.input_types, *case.program.output_types)))


@cache
def interpreted_cases(name: str) -> tuple[Case, ...]:
    """The smallest compiled cases of a primitive that have all its dtypes, and other small ones."""
    chosen = with_all_kinds(sorted(covered(name), key=elements))
    others = [case for case in covered(name) if case not in chosen and elements(case) <= SMALL]
    return (*chosen, *others[: max(MANY - len(chosen), 0)])


@primitives_with(lambda p: not isinstance(p.lower, NoRule), "llvm")
@sampled(1)
def test_interpreted_loops_have_the_bits_of_llvm(primitive: Primitive, seed: int) -> None:
    native, (cases, program) = ran(primitive, seed), interpreted(primitive)
    got = run_loops(program, [x for case in cases for x in native[case][0]])
    for case, mine in zip(cases, split(got, cases), strict=True):
        xs, theirs = native[case]
        for a, b in zip(mine, theirs, strict=True):
            by_library = isinstance(primitive.lower, Library) or primitive.name in OF_PRODUCTS
            tolerance = BY_LIBRARY if by_library and b.dtype.kind in "fcV" else None
            check_close(a, b, tolerance, f"{case}: interpreted against LLVM", xs)
