"""Loop IR, LLVM and assembly know the user's lines, and stay what they are without them."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.explorer.functions import LAYER, layer, line_of
from tests.golden_programs import PROGRAMS
from tests.grids import THOROUGH
from tests.laws.cases import cases_of, covering_cases
from tests.laws.sampling import primitives_with
from tracer import lax
from tracer.codegen.llvm.toolchain import line_table
from tracer.ir.loop.text import loop_text, statements_by_line
from tracer.ir.primitive import Primitive
from tracer.passes.pipeline import optimize
from tracer.primitives.catalogue import CATALOGUE
from tracer.runtime.compile.located import Located
from tracer.runtime.compile.this_machine import this_cpu
from tracer.runtime.jit.lowered import Lowered
from tracer.schedule.pipeline import loops
from tracer.schedule.terms.origins import Origins

NAMES = [function.__name__ for function in PROGRAMS]


def lowered(name: str) -> Lowered:
    function = next(each for each in PROGRAMS if each.__name__ == name)
    return tracer.jit(function).lower(*PROGRAMS[function])


@pytest.fixture(scope="module")
def native() -> Located:
    return tracer.jit(layer).lower(*LAYER).located()


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_leave_every_stage_as_it_was(name: str) -> None:
    whole = lowered(name)
    native = whole.located()
    assert native.nests[-1].text == str(whole.loops())
    assert native.llvm == whole.llvm()
    assert native.asm == whole.asm()
    assert len(native.llvm_lines) == len(native.llvm.splitlines())
    assert len(native.asm_lines) == len(native.asm.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_each_printed_line_has_its_statement(name: str) -> None:
    module = lowered(name).loops()
    assert len(statements_by_line(module)) == len(loop_text(module).splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_nearly_all_lines_of_nests_and_instructions_are_known(name: str) -> None:
    native = lowered(name).located()
    texts = native.nests[-1].text.splitlines()
    unknown = [text for text, lines in zip(texts, native.nests[-1].lines, strict=True) if text and not lines]
    assert [text.strip() for text in unknown if text.strip() != "leave"] == [texts[0]]
    instructions = [n for n, text in enumerate(native.asm.splitlines()) if line_table._INSTRUCTION.match(text)]
    known = [n for n in instructions if native.asm_lines[n] is not None]
    shared = native.llvm.count("; begin ")  # functions of several programs, which have no lines of one
    # LLVM's own moves of registers, as around the rare call of a poll, have no line
    assert len(known) > (0.3 if shared else 0.85) * len(instructions)


def lines_with(native: Located, text: str) -> set[int]:
    last = native.nests[-1]
    pairs = zip(last.text.splitlines(), last.lines, strict=True)
    return {source.line for line, sources in pairs if text in line for source in sources}


def test_a_register_has_the_line_of_the_equation_that_computes_it(native: Located) -> None:
    assert lines_with(native, "copysign") == {line_of("hidden = tnp.tanh")}
    assert lines_with(native, "mul 0.9:f64") == {line_of("steps = lax.scan")}


def test_what_a_loop_pass_writes_out_has_the_line_of_what_it_computes(native: Located) -> None:
    written_out = lines_with(native, "2.8853900817779268:f64")  # of tanh, in `expand_math`
    assert written_out == {line_of("hidden = tnp.tanh")}


def test_a_check_for_failure_has_the_line_of_the_loop_that_may_fail(native: Located) -> None:
    assert lines_with(native, "leave") == {line_of("steps = lax.scan")}


def test_an_instruction_leads_to_the_users_line(native: Located) -> None:
    asm, llvm = native.asm.splitlines(), native.llvm.splitlines()
    found = set()
    for text, place in zip(asm, native.asm_lines, strict=True):
        if place is not None and text.split()[0].startswith(("vdiv", "fdiv", "divs", "divp")):
            assert "fdiv" in llvm[place]
            nest = native.llvm_lines[place]
            assert nest is not None
            found |= {source.line for source in native.nests[-1].lines[nest]}
    assert line_of("hidden = tnp.tanh") in found


def test_a_matrix_product_by_the_library_has_its_line() -> None:
    native = tracer.jit(lambda x, y: tnp.sin(x) @ y).lower(np.ones((300, 300)), np.ones((300, 300))).located()
    last = native.nests[-1]
    calls = [own for text, own in zip(last.text.splitlines(), last.lines, strict=True) if "library" in text]
    assert calls
    assert all(source.file == __file__ for own in calls for source in own)


def test_a_location_is_given_to_instructions_alone() -> None:
    body = "entry:\n  store i64 1, ptr %x, align 8 ; one\n  ret void\n"
    text = f"define void @f(ptr %x) #0 {{\n{body}}}\nattributes #0 = {{ nounwind }}\n"
    located = line_table.located_text(text).splitlines()
    assert located[0].startswith("define void @f(ptr %x) #0 !dbg !")
    assert located[1] == "entry:"
    assert located[2].startswith("  store i64 1, ptr %x, align 8, !dbg !")
    asm, places = line_table.assembly_lines(text, opt=2)
    assert {place for place in places if place is not None} <= {0, 2, 3}
    assert len(places) == len(asm.splitlines())


def test_text_in_an_unknown_form_has_no_lines_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_table, "located_text", lambda text: text + "\nnonsense")
    asm, places = line_table.assembly_lines("define void @f() {\nentry:\n  ret void\n}\n", opt=2)
    assert "ret" in asm
    assert set(places) == {None}


@primitives_with(lambda p: THOROUGH or CATALOGUE.index(p) % 3 == 0, "located loops")
def test_lines_change_no_loop(primitive: Primitive) -> None:
    for case in covering_cases(cases_of(primitive.name))[::4]:
        program = optimize(case.program)
        text = loop_text(loops(program, this_cpu()).module)
        assert loop_text(loops(program, this_cpu(), origins=Origins()).module) == text


def test_a_loop_over_a_vector_has_a_page() -> None:
    page = tracer.explore(lambda x: lax.fori_loop(0, 3, lambda _, e: tnp.cos(e), x), np.ones(3)).html()
    assert "fori_loop" in page
