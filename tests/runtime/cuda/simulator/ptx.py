"""The PTX that NVRTC made of a text, as C++ for the simulator: one statement an instruction, a goto a branch.

It shows what the compiler made of a kernel: what it moved, joined, or reads through the cache of constants. An address
holds the number of its memory above bit 40, so that bounds are those of the argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

_ENTRY: Final = re.compile(r"\.entry (\w+)\s*\((.*?)\)(.*?)\{\n(.*?)\n\}", re.DOTALL)
_WIDTH: Final = {"8": "u8", "16": "u16", "32": "u32", "64": "u64"}
_PLACES: Final = {"tid": "sim_thread", "ctaid": "sim_block", "ntid": "sim_threads", "nctaid": "sim_blocks"}

_VALUES: Final[Mapping[str, str]] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "min": "least({0}, {1})", "max": "most({0}, {1})", "rem": "rest({0}, {1})", "neg": "-{0}", "mov": "{0}",
    "sqrt": "sqrt({0})", "rcp": "1 / {0}", "fma": "fma({0}, {1}, {2})", "ex2": "exp2({0})", "lg2": "log2({0})",
    "rsqrt": "1 / sqrt({0})", "copysign": "copysign({1}, {0})", "selp": "{2} ? {0} : {1}", "cvta": "{0}",
}  # fmt: skip
"""Values of instructions on operands of the instruction's own type."""

_UNKNOWN: Final = frozenset(("ftz", "sat", "NaN", "xorsign", "full"))

_COMPARE: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_COMPARE: Final = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_ATOMIC: Final = {"add": "added", "min": "least", "max": "most", "or": "either", "and": "both", "exch": "second"}


def translate(ptx: str, pointers: Mapping[str, Collection[int]]) -> str:
    """Return C++ with a function `enter_NAME` for every kernel. pointers: the places of each one's pointer parameters.

    Raises NotImplementedError for an instruction that is not known here.
    """
    plain = re.sub(r"//.*", "", ptx)
    return "".join(_kernel(name, given, body, pointers[name]) for name, given, _, body in _ENTRY.findall(plain))


def _kernel(name: str, parameters: str, body: str, pointers: Collection[int]) -> str:
    if ".local" in body:
        raise NotImplementedError(f"{name} keeps values in local memory")
    translation = _Translation(re.findall(r"\.param \.\w+ (\w+)", parameters), pointers)
    lines = [f'extern "C" void enter_{name}(void** p) {{']
    for kind, prefix, count in re.findall(r"\.reg \.(\w+)\s+%(\w+?)<(\d+)>;", body):
        width = "bool" if kind == "pred" else _WIDTH[re.sub(r"\D", "", kind)]
        lines.append(f"{width} " + ", ".join(f"r_{prefix}{i} = 0" for i in range(1, int(count))) + ";")
    for align, size, symbol, count in re.findall(r"\.shared \.align (\d+) \.[bfus](\d+) ([\w$]+)(?:\[(\d+)\])?;", body):
        lines.append(translation.shared(symbol, int(align), int(size) // 8 * int(count or 1)))
    body = re.sub(r"^\s*\.(?:reg|shared|pragma|loc)\b[^;]*;", "", body, flags=re.MULTILINE)
    for line in re.split(r";|(?<=:)", body):
        text = " ".join(line.split())
        if text:
            lines.append(f"{text.replace('$', '')};" if text.endswith(":") else translation.statement(text))
    return "\n".join([*lines, "}\n"])


class _Translation:
    """One kernel: its parameters by name, and its shared arrays by symbol."""

    def __init__(self, parameters: Sequence[str], pointers: Collection[int]) -> None:
        self._parameters = {name: i for i, name in enumerate(parameters)}
        self._pointers = pointers
        self._shared: dict[str, int] = {}

    def shared(self, symbol: str, align: int, size: int) -> str:
        """Declare a shared array, of elements as wide as its alignment."""
        key = self._shared[symbol] = len(self._shared) + 1
        name = re.sub(r"^_ZZ\d*\w*?E(?=\d*[a-z])", "", symbol)
        return f'sim_shared({key}, {size // align}, {align}, "{name}");'

    def statement(self, text: str) -> str:
        """Return an instruction as C++."""
        guard = ""
        if m := re.match(r"@(!?)%(p\d+) ", text):
            guard, text = f"if ({m[1]}r_{m[2]}) ", text[m.end() :]
        name, _, rest = text.partition(" ")
        operands = [o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        head, *modifiers = name.split(".")
        if _UNKNOWN & set(modifiers):
            raise NotImplementedError(text)
        spell: Callable[[list[str], list[str]], str] | None = getattr(self, f"_{head}", None)
        try:
            found = spell(modifiers, operands) if spell else self._by_table(head, modifiers, operands)
        except (KeyError, IndexError, ValueError) as error:
            raise NotImplementedError(text) from error
        return f"{guard}{{ {found} }}"

    # -- operands --------------------------------------------------------------------------------------

    def _read(self, operand: str, kind: str) -> str:
        """Return an operand as a value of a type such as f32, s64, b16 or pred."""
        kind = kind.replace("b", "u") if kind != "pred" else kind
        if m := re.fullmatch(r"%(tid|ctaid|ntid|nctaid)\.([xyz])", operand):
            word = f"{_PLACES[m[1]]}.{m[2]}"
        elif operand == "%laneid":
            word = "(u32)sim_lane()"
        elif operand.startswith("%"):
            word = f"r_{operand[1:]}"
        elif operand in self._shared:
            return f"((u64)1 << 56 | (u64){self._shared[operand]} << 40)"
        elif m := re.fullmatch(r"0([fd])(\w+)", operand):
            word = f"0x{m[2]}{'u' if m[1] == 'f' else 'ull'}"
        else:
            return f"({kind})({int(operand, 0)}{'ll' if kind.endswith('64') else ''})" if kind != "pred" else operand
        return word if kind == "pred" else f"as<{kind}>({word})"

    def _write(self, operand: str, kind: str, value: str) -> str:
        """Return an assignment of a value of this type to a register."""
        if operand == "_":
            return f"{value};"
        if kind == "pred":
            return f"r_{operand[1:]} = {value};"
        kind = kind.replace("b", "u")
        word = kind if kind[0] != "f" else f"u{kind[1:]}"
        if kind[0] == "s":  # signed values fill a wider register with their sign
            return f"r_{operand[1:]} = ({kind})({value});"
        return f"r_{operand[1:]} = as<{word}>(({kind})({value}));"

    def _address(self, operand: str) -> str:
        m = re.fullmatch(r"\[([^+\]]+)(?:\+(-?\d+))?\]", operand)
        if m is None:
            raise ValueError(operand)
        return f"{self._read(m[1], 'u64')} + ({m[2] or 0})"

    # -- instructions ----------------------------------------------------------------------------------

    def _by_table(self, head: str, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        kinds = [kind, kind, "pred"] if head == "selp" else [kind] * 3
        given = [self._read(o, k) for o, k in zip(operands[1:], kinds, strict=False)]
        value = _VALUES[head].format(*given)
        if kind == "pred":
            value = value.replace("~", "!")
        return self._write(operands[0], kind, value)

    def _mov(self, modifiers: list[str], operands: list[str]) -> str:
        kind, (to, source) = modifiers[-1], operands
        part = f"u{int(kind[1:]) // 2}" if kind != "pred" else ""
        if source.startswith("{"):
            low, high = (self._read(o.strip(), part) for o in source[1:-1].split(","))
            return self._write(to, kind, f"({kind.replace('b', 'u')}){high} << {part[1:]} | {low}")
        if to.startswith("{"):
            names = [o.strip() for o in to[1:-1].split(",")]
            shifts = (0, int(part[1:]))
            word = self._read(source, kind)
            return " ".join(self._write(o, part, f"{word} >> {n}") for o, n in zip(names, shifts, strict=True))
        return self._write(to, kind, self._read(source, kind))

    def _not(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        return self._write(operands[0], kind, f"{'!' if kind == 'pred' else '~'}{self._read(operands[1], kind)}")

    def _abs(self, modifiers: list[str], operands: list[str]) -> str:
        kind, value = modifiers[-1], self._read(operands[1], modifiers[-1])
        size = f"fabs({value})" if kind[0] == "f" else f"{value} < 0 ? -{value} : {value}"
        return self._write(operands[0], kind, size)

    def _mul(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        a, b = (self._read(o, kind) for o in operands[1:3])
        if "wide" in modifiers:
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            return self._write(operands[0], wide, f"({wide}){a} * ({wide}){b}")
        return self._write(operands[0], kind, f"high_part({a}, {b})" if "hi" in modifiers else f"{a} * {b}")

    def _mad(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        a, b = (self._read(o, kind) for o in operands[1:3])
        if "wide" in modifiers:
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            return self._write(operands[0], wide, f"({wide}){a} * ({wide}){b} + {self._read(operands[3], wide)}")
        product = f"high_part({a}, {b})" if "hi" in modifiers else f"{a} * {b}"
        return self._write(operands[0], kind, f"{product} + {self._read(operands[3], kind)}")

    def _div(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        a, b = (self._read(o, kind) for o in operands[1:])
        return self._write(operands[0], kind, f"{a} / {b}" if kind[0] == "f" else f"quotient({a}, {b})")

    def _shl(self, modifiers: list[str], operands: list[str]) -> str:
        value = f"shifted_left({self._read(operands[1], modifiers[-1])}, {self._read(operands[2], 'u32')})"
        return self._write(operands[0], modifiers[-1], value)

    def _shr(self, modifiers: list[str], operands: list[str]) -> str:
        value = f"shifted_right({self._read(operands[1], modifiers[-1])}, {self._read(operands[2], 'u32')})"
        return self._write(operands[0], modifiers[-1], value)

    def _shf(self, modifiers: list[str], operands: list[str]) -> str:
        low, high, by = (self._read(o, "u32") for o in operands[1:])
        both, by = f"((u64){high} << 32 | {low})", f"({by} & 31)"
        return self._write(operands[0], "u32", f"{both} >> {by}" if modifiers[0] == "r" else f"{both} << {by} >> 32")

    def _bfi(self, modifiers: list[str], operands: list[str]) -> str:
        """Bits of the first operand in the place of some of the second's."""
        kind = modifiers[-1]
        inserted, into = (self._read(o, kind) for o in operands[1:3])
        first, count = (int(o, 0) for o in operands[3:])
        mask = f"(u{kind[1:]})0x{((1 << count) - 1) << first:x}ull"
        return self._write(operands[0], kind, f"({into} & ~{mask}) | ({inserted} << {first} & {mask})")

    def _popc(self, modifiers: list[str], operands: list[str]) -> str:
        return self._write(operands[0], "u32", f"__builtin_popcountll({self._read(operands[1], modifiers[-1])})")

    def _clz(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1]
        spell = "__clzll" if kind == "b64" else "__clz"
        return self._write(operands[0], "u32", f"{spell}({self._read(operands[1], kind)})")

    def _prmt(self, _: list[str], operands: list[str]) -> str:
        given = ", ".join(self._read(o, "u32") for o in operands[1:])
        return self._write(operands[0], "u32", f"chosen_bytes({given})")

    def _lop3(self, _: list[str], operands: list[str]) -> str:
        given = ", ".join(self._read(o, "u32") for o in operands[1:])
        return self._write(operands[0], "u32", f"any_of_three({given})")

    def _setp(self, modifiers: list[str], operands: list[str]) -> str:
        kind, how = modifiers[-1], modifiers[0]
        a, b = (self._read(o, kind) for o in operands[1:3])
        if how in ("nan", "num"):
            value = f"({a} != {a} || {b} != {b})" if how == "nan" else f"({a} == {a} && {b} == {b})"
        elif how[-1] == "u" and how[:-1] in _COMPARE and kind[0] == "f":
            opposite = {"eq": "!=", "ne": "==", "lt": ">=", "le": ">", "gt": "<=", "ge": "<"}[how[:-1]]
            value = f"!({a} {opposite} {b})" if how != "neu" else f"({a} != {b})"
            value = f"(({a} != {a} || {b} != {b}) || {a} == {b})" if how == "equ" else value
        elif how == "ne" and kind[0] == "f":  # ordered: false for NaN
            value = f"({a} < {b} || {a} > {b})"
        else:
            value = f"({a} {(_COMPARE | _UNSIGNED_COMPARE)[how]} {b})"
        for join, sign in (("and", "&&"), ("or", "||")):
            if join in modifiers:
                value = f"{value} {sign} {self._read(operands[3], 'pred')}"
        return self._write(operands[0].partition("|")[0], "pred", value)

    def _cvt(self, modifiers: list[str], operands: list[str]) -> str:
        to, source = modifiers[-2:]
        value = self._read(operands[1], source)
        rounding = next((m for m in modifiers[:-2] if m in ("rni", "rzi", "rmi", "rpi")), "")
        if rounding and to[0] == "f":
            whole = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[rounding]
            value = f"{whole}({value})"
        elif rounding:
            whole = {"rni": "rint", "rzi": "", "rmi": "floor", "rpi": "ceil"}[rounding]
            value = f"truncated<{to}>({whole}({value}))" if whole else f"truncated<{to}>({value})"
        return self._write(operands[0], to, f"({to})({value})")

    # -- memory ----------------------------------------------------------------------------------------

    def _ld(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1].replace("b", "u")
        if "param" in modifiers:
            place = self._parameters[operands[1][1:-1]]
            value = f"sim_base((Memory*)p[{place}])" if place in self._pointers else f"*({kind}*)p[{place}]"
            return self._write(operands[0], kind, value)
        atomic = int(bool({"volatile", "relaxed", "acquire"} & set(modifiers)))
        cached, address = int("nc" in modifiers), self._address(operands[1])
        if not operands[0].startswith("{"):
            return self._write(operands[0], kind, f"loaded<{kind}>({address}, {atomic}, {cached})")
        names = [o.strip() for o in operands[0][1:-1].split(",")]
        size = int(kind[1:]) // 8
        first = f"sim_at({address}, {size * len(names)}, 0, {atomic}, {cached});"
        rest = (
            self._write(name, kind, f"loaded<{kind}>({address} + {size * i}, {atomic}, {cached})")
            for i, name in enumerate(names)
        )
        return " ".join([first, *rest])

    def _st(self, modifiers: list[str], operands: list[str]) -> str:
        kind, address = modifiers[-1], self._address(operands[0])
        atomic = int(bool({"volatile", "relaxed", "release"} & set(modifiers)))
        word = f"u{kind[1:]}"
        if not operands[1].startswith("{"):
            return f"stored<{word}>({address}, {self._read(operands[1], word)}, {atomic});"
        names = [o.strip() for o in operands[1][1:-1].split(",")]
        size = int(kind[1:]) // 8
        first = f"sim_at({address}, {size * len(names)}, 1, {atomic}, 0);"
        rest = (
            f"stored<{word}>({address} + {size * i}, {self._read(name, word)}, {atomic});"
            for i, name in enumerate(names)
        )
        return " ".join([first, *rest])

    def _atom(self, modifiers: list[str], operands: list[str]) -> str:
        kind = modifiers[-1].replace("b", "u")
        change = _ATOMIC[next(m for m in modifiers if m in _ATOMIC)]
        value = f"changed<{kind}>({self._address(operands[1])}, {change}<{kind}>, {self._read(operands[2], kind)})"
        return self._write(operands[0], kind, value)

    def _red(self, modifiers: list[str], operands: list[str]) -> str:
        return self._atom(modifiers, ["_", *operands])

    # -- threads together --------------------------------------------------------------------------------

    def _shfl(self, modifiers: list[str], operands: list[str]) -> str:
        to, _, flag = operands[0].partition("|")
        value, by, clamp, mask = (self._read(o, "u32") for o in operands[1:5])
        sign = {"bfly": "sim_lane() ^", "up": "sim_lane() -", "down": "sim_lane() +", "idx": ""}[modifiers[1]]
        source = f"{sign} (s32){by}"
        inside = f"r_{flag[1:]}" if flag else "unused"
        declared = "" if flag else "bool unused; "
        width = f"if (({clamp} & 31) != {0 if modifiers[1] == 'up' else 31} || {clamp} >> 8) sim_narrow();"
        return f"{declared}{width} {self._write(to, 'u32', f'exchanged({value}, {source}, {mask}, {inside})')}"

    def _vote(self, modifiers: list[str], operands: list[str]) -> str:
        votes = f"sim_ballot({self._read(operands[2], 'u32')}, {self._read(operands[1], 'pred')}, 0)"
        if modifiers[1] == "ballot":
            return self._write(operands[0], "u32", votes)
        return self._write(operands[0], "pred", f"{votes} {'!= 0' if modifiers[1] == 'any' else '== 0xffffffffu'}")

    def _bar(self, modifiers: list[str], operands: list[str]) -> str:
        if modifiers[0] == "warp":
            return "sim_ballot(0xffffffffu, 0, 0);"
        if operands != ["0"]:
            raise ValueError(operands)
        return "sim_barrier(0);"

    def _barrier(self, modifiers: list[str], operands: list[str]) -> str:
        return self._bar(modifiers, operands)

    def _membar(self, *_: list[str]) -> str:
        return "sim_fence();"

    def _fence(self, *_: list[str]) -> str:
        return "sim_fence();"

    def _nanosleep(self, *_: list[str]) -> str:
        return "sim_pause(0);"

    def _bra(self, _: list[str], operands: list[str]) -> str:
        return f"goto {operands[0].replace('$', '')};"

    def _ret(self, *_: list[str]) -> str:
        return "return;"
