"""Laws: LLVM computes what the array reference does, for every dtype; equal bits at every width of vectors, and by
the interpreter of loop IR.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from tests.laws.cases import Case, cases_of, covering_cases, large_cases_of, longest, with_all_kinds
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
    """The long cases as programs, each with widths of vectors besides this machine's own at which it is tried.

    The cases of a dtype are tried at one of them, which differs from primitive to primitive, and so is each case
    where dtypes are fewer than widths; thoroughly, at all.
    """
    cases = long_cases(primitive.name)
    if THOROUGH:
        return ((cases, scheduled(cases), OTHER),)
    turn, chosen = CATALOGUE.index(primitive), dtypes_in(cases)
    shares: list[list[Case]] = [[] for _ in OTHER]
    for number, case in enumerate(cases):
        place = number if len(chosen) < len(OTHER) else chosen.index(dtypes_of(case))
        shares[(turn + place) % len(OTHER)].append(case)
    return tuple((tuple(share), scheduled(share), (bits,)) for share, bits in zip(shares, OTHER, strict=True) if share)


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
def compiled(primitive: Primitive) -> tuple[tuple[tuple[Case, ...], Native], ...]:
    """All of a primitive's cases as programs, the long ones first, and with the short ones those to interpret."""
    long = long_cases(primitive.name)
    wanted = dict.fromkeys((*covered(primitive.name), *interpreted_cases(primitive.name)))
    short = tuple(case for case in wanted if case not in long)
    programs = [(cases, Native(program)) for cases, program, _ in dealt(primitive)]
    return (*programs, *([(short, Native(scheduled(short)))] if short else []))


@lru_cache(maxsize=2)
def compiled_for_widths(primitive: Primitive) -> tuple[tuple[tuple[Case, ...], Width, Native], ...]:
    """Long cases as programs for other widths of vectors than this machine's own: of the shares one in turn.

    Thoroughly, or of few dtypes, all shares.
    """
    shares = dealt(primitive)
    turn = CATALOGUE.index(primitive)
    every = THOROUGH or len(dtypes_in(long_cases(primitive.name))) < len(OTHER)
    chosen = shares if every else [shares[turn // 2 % len(shares)]]
    return tuple((cases, bits, Native(program, bits)) for cases, program, widths in chosen for bits in widths)


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
    """The long cases that threads share: with all dtypes of a primitive, and a sixth of the rest; thoroughly, all.

    Elements that do not depend on each other are shared in one way, whichever dtype: a third of the dtypes, in turn.
    """
    cases = long_cases(primitive.name)
    if THOROUGH:
        return cases
    first = with_all_kinds(cases)
    rest = [case for case in cases if case not in first]
    if isinstance(primitive.lower, Pointwise | Compare | Composite):
        first = first[CATALOGUE.index(primitive) % 3 :: 3] or first
    return (*first, *rest[::6])


@lru_cache(maxsize=2)
def compiled_shared(primitive: Primitive) -> Native:
    """Long cases as one program, every nest shared by threads, however little it does."""
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


@primitives_with(lambda p: not isinstance(p.lower, NoRule) and bool(large_cases_of(p.name)), "llvm")
@sampled(1)
def test_large_arrays_are_the_reference_on_any_number_of_threads(primitive: Primitive, seed: int) -> None:
    cases = covering_cases(large_cases_of(primitive.name))
    values = drawn(cases, seed)
    flat = [x for xs in values for x in xs]
    program = Native(schedule(optimize(together([case.program for case in cases])), TINY))
    with config.using(threads=1):
        alone = split(program.run(flat), cases)
    with config.using(threads=3):
        shared = split(program.run(flat), cases)
    for case, xs, one, three in zip(cases, values, alone, shared, strict=True):
        check_case(case, xs, one, run_reference(case.program, xs))
        for a, b in zip(three, one, strict=True):
            check_close(a, b, None, f"{case}: threads against one", xs)


BY_LIBRARY = Tolerance(16, "NumPy stands for the library's routine, and sums in its own order", absolute=256)
OF_PRODUCTS = ("conv", "pinv", "lstsq")  # composites, in which NumPy stands for BLAS
SMALL = 40  # elements in all of a case that is interpreted for more than its dtypes
MANY = 1000 if THOROUGH else 10  # cases of a primitive that are interpreted, unless its dtypes need more


def elements(case: Case) -> int:
    return sum(map(size, (*case.program.input_types, *case.program.output_types)))


@cache
def interpreted_cases(name: str) -> tuple[Case, ...]:
    """The smallest cases of a primitive that have all its dtypes, and other small ones."""
    chosen = with_all_kinds(sorted(cases_of(name), key=elements))
    others = [case for case in cases_of(name) if case not in chosen and elements(case) <= SMALL]
    return (*chosen, *others[: max(MANY - len(chosen), 0)])


@primitives_with(lambda p: not isinstance(p.lower, NoRule), "llvm")
@sampled(1)
def test_interpreted_loops_have_the_bits_of_llvm(primitive: Primitive, seed: int) -> None:
    cases, native = interpreted_cases(primitive.name), ran(primitive, seed)
    got = run_loops(scheduled(cases), [x for case in cases for x in native[case][0]])
    for case, mine in zip(cases, split(got, cases), strict=True):
        xs, theirs = native[case]
        for a, b in zip(mine, theirs, strict=True):
            by_library = isinstance(primitive.lower, Library) or primitive.name in OF_PRODUCTS
            tolerance = BY_LIBRARY if by_library and b.dtype.kind in "fcV" else None
            check_close(a, b, tolerance, f"{case}: interpreted against LLVM", xs)
