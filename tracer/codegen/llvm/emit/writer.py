"""Writer of LLVM text: numbered names, basic blocks, declarations."""

from __future__ import annotations

from tracer.codegen.llvm.toolchain.types import suffix, vector


class Writer:
    """Lines of one function, and the declarations that they need.

    Names count up in order of emission, so equal functions give equal text.

    half_native: whether the machine converts between `half` and `float` itself. splits_floats: whether it has
    instructions for the exponents and significands of floats (AVX-512). permutes_singles: whether it has one that
    permutes eight f32 (AVX2). multiplies_roots: whether square roots of f64 are currently written as products.
    """

    __slots__ = (
        "block",
        "count",
        "declarations",
        "half_native",
        "lines",
        "multiplies_roots",
        "permutes_singles",
        "splits_floats",
    )

    def __init__(
        self, declarations: dict[str, str], *, half_native: bool, splits_floats: bool, permutes_singles: bool
    ) -> None:
        self.lines: list[str] = []
        self.declarations = declarations
        self.half_native = half_native
        self.splits_floats = splits_floats
        self.permutes_singles = permutes_singles
        self.multiplies_roots = False
        self.count = 0
        self.block = "entry"

    def alike(self) -> Writer:
        """Return a writer for another function of the module, with the same declarations and machine."""
        return Writer(
            self.declarations, half_native=self.half_native, splits_floats=self.splits_floats,
            permutes_singles=self.permutes_singles,
        )  # fmt: skip

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def let(self, text: str) -> str:
        """Append an instruction and name its result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def open(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str, *, unlikely: bool = False) -> None:
        """Go to `then` where `condition` holds. unlikely: it hardly ever does."""
        weights = ", !prof !0" if unlikely else ""
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{otherwise}{weights}")

    def slot(self) -> int:
        """Reserve a line to be written later with `fill`."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, slot: int, lines: list[str]) -> None:
        self.lines[slot] = "\n".join(lines)

    def intrinsic(self, name: str, element: str, lanes: int, *values: str) -> str:
        """Call an intrinsic whose operands and result are all of one type."""
        full, spelled = f"@{name}{suffix(element, lanes)}", vector(element, lanes)
        if full not in self.declarations:
            self.declarations[full] = f"declare {spelled} {full}({', '.join([spelled] * len(values))})"
        return self.let(f"call {spelled} {full}({', '.join(f'{spelled} {v}' for v in values)})")

    def any(self, mask: str, lanes: int) -> str:
        """Return whether the mask has a lane set, as an i1."""
        full, spelled = f"@llvm.vector.reduce.or.v{lanes}i1", vector("i1", lanes)
        self.declarations[full] = f"declare i1 {full}({spelled})"
        return self.let(f"call i1 {full}({spelled} {mask})")

    def splat(self, element: str, value: str, lanes: int, lines: list[str] | None = None) -> str:
        """Return a scalar in every lane, written into `lines` if given."""
        target = self.lines if lines is None else lines
        one, all_, spelled = self.name(), self.name(), vector(element, lanes)
        target.append(f"  {one} = insertelement {spelled} poison, {element} {value}, i64 0")
        target.append(f"  {all_} = shufflevector {spelled} {one}, {spelled} poison, <{lanes} x i32> zeroinitializer")
        return all_
