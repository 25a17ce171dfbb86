"""Settings: `tracer.config`, one instance of `Config`, whose attributes are the settings.

    config.default_float = "float32"                    from now on, in every thread
    with config.using(default_float="float32"): ...     in this block, on this thread
    config.update("threads", 4)                         by name, as in JAX
    TRACER_DEFAULT_FLOAT=float32                        in the environment, read at the setting's first use

A setting that is read while a function is traced or compiled is part of its program's key: see `KEYED`.
"""

from __future__ import annotations

import ctypes
import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, overload

import numpy as np

from tracer.errors import SettingError, message
from tracer.lazy import LazyModule

if TYPE_CHECKING:
    import pathlib
else:
    pathlib = LazyModule("pathlib")

T = TypeVar("T")


class _Closed(threading.local):
    count = 0
    overriding = 0


class Gate:
    """Two 8-byte words that compiled entries read first, to decide whether they may run at once.

    closed: the number of reasons, in all threads, to go through Python instead: open traces and blocks that override
    settings. version: the number of permanent changes of settings.
    """

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * 2)()
        self.closed = self.words[0] = 1  # the first word again, as a Python integer
        self.elsewhere = 1  # the number of reasons to look for a default device other than the CPU
        self._is_elsewhere = True  # until the setting is read
        self.overridden = 0  # the number of blocks that override settings, in all threads
        self._lock = threading.Lock()
        self.epoch = 0  # the version again, as a Python integer
        self._mine = _Closed()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def close(self) -> None:
        """Add a reason; `open` removes it, on the same thread."""
        with self._lock:
            self.closed = self.words[0] = self.closed + 1
        self._mine.count += 1

    def open(self) -> None:
        """Remove a reason."""
        self._mine.count -= 1
        with self._lock:
            self.closed = self.words[0] = self.closed - 1

    def hold(self, elsewhere: bool) -> None:
        """Keep the gate closed on all threads while arrays are made elsewhere than on the CPU."""
        with self._lock:
            self.closed = self.words[0] = self.closed + elsewhere - self._is_elsewhere
            self.elsewhere += elsewhere - self._is_elsewhere
            self._is_elsewhere = elsewhere

    def override(self, blocks: int, *, device: bool = False) -> None:
        """Count blocks that override settings, as entered (1) or left (-1); each also closes and opens the gate.

        device: whether the default device is among the settings.
        """
        with self._lock:
            self.overridden += blocks
            self.elsewhere += blocks * device
        self._mine.overriding += blocks

    def changed(self) -> None:
        """Count a permanent change of a setting."""
        with self._lock:
            self.words[1] += 1
            self.epoch += 1

    @property
    def version(self) -> int:
        """The number of permanent changes of settings."""
        return self.words[1]

    @property
    def is_open_here(self) -> bool:
        """Whether this thread has no reason to keep the gate closed."""
        return self._mine.count == 0 and not self._is_elsewhere

    @property
    def has_reasons(self) -> bool:
        """Whether a thread has an open trace, or a block that overrides settings."""
        return self.closed != self._is_elsewhere

    def _reset(self) -> None:
        """Keep this thread's reasons alone, after a fork."""
        self._lock = threading.Lock()
        self.closed = self.words[0] = self._mine.count + self._is_elsewhere
        self.overridden = self._mine.overriding


gate = Gate()


thread_count = ctypes.c_int32(1)
"""How many threads a loop may use: a word that compiled code reads. It never matters for results, so that a block that
overrides `config.threads` on one thread may set it for all."""


def thread_count_in_force() -> int:
    """Set `thread_count` by the value of `config.threads` on this thread."""
    thread_count.value = config.threads or _usable_processors()
    return thread_count.value


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Setting(Generic[T]):
    """A setting, as a descriptor of `Config`. `read` converts the value of the user or the environment."""

    def __init__(self, meaning: str, default: T, read: Callable[[Any], T], takes: str) -> None:
        self.meaning = self.__doc__ = meaning
        self.default = default
        self.read = read
        self.takes = takes

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.variable = f"TRACER_{name.upper()}"

    @overload
    def __get__(self, config: None, owner: type) -> Self: ...
    @overload
    def __get__(self, config: Config, owner: type) -> T: ...
    def __get__(self, config: Config | None, owner: type) -> T | Self:
        if config is None:
            return self
        name = self.name
        values: dict[str, Any] = overrides.values
        if name in values:
            return values[name]  # type: ignore[no-any-return]
        values = config._values
        if name not in values:
            text = os.environ.get(self.variable)
            values[name] = self.default if text is None else self.checked(text, self.variable)
            self._apply(config)
        return values[name]  # type: ignore[no-any-return]

    def __set__(self, config: Config, value: Any) -> None:
        config._values[self.name] = self.checked(value, f"config.{self.name}")
        gate.changed()
        self._apply(config)

    def _apply(self, of: Config) -> None:
        if self.name == "threads":
            thread_count_in_force()
        elif self.name == "default_device" and of is config:
            gate.hold(of._values[self.name] != "cpu")

    def checked(self, value: Any, origin: str) -> T:
        """Return the value in the setting's own type. Raises SettingError if the setting does not accept it."""
        try:
            return self.read(value)
        except Exception:  # int, dtype and Path raise many kinds for objects of other types
            raise SettingError(
                message(f"{origin} does not take {_shown(value)}", f"it is {self.meaning}", help=f"give {self.takes}")
            ) from None


def _shown(value: Any) -> str:
    return f"{value!r}"[:80]


def _read_float(value: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(value)
    if value is None or dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError
    return dtype


def _read_integer(value: Any) -> int:
    """Return an integer, or the integer of a text.

    Raises ValueError or TypeError for any other value, bools among them.
    """
    if isinstance(value, bool):
        raise ValueError
    return int(value) if isinstance(value, str) else operator.index(value)


def _read_int(value: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(value)
    if value is None or dtype not in (np.dtype("int32"), np.dtype("int64")):
        raise ValueError
    return dtype


def _read_count(value: Any) -> int:
    count = _read_integer(value)
    if count < 0:
        raise ValueError
    return count


def _read_threads(value: Any) -> int:
    count = _read_count(value)
    if count >= 1 << 31:  # `thread_count` is an int32
        raise ValueError
    return count


def _read_bool(value: Any) -> bool:
    return {"1": True, "true": True, "0": False, "false": False}[str(value).lower()]


def _read_device(value: Any) -> str:
    name, colon, ordinal = ("cpu" if value is None else str(value)).partition(":")
    if name == "cpu" and ordinal in ("", "0"):
        return "cpu"
    if name not in ("cuda", "gpu", "cuda-sim") or not (ordinal.isdecimal() or not colon):
        raise ValueError
    return f"{name.replace('gpu', 'cuda')}:{int(ordinal or 0)}"


def _read_bits(value: Any) -> int | None:
    if value is None or value == "":
        return None
    bits = _read_integer(value)
    if bits not in (0, 128, 256, 512):
        raise ValueError
    return bits


def _read_bytes(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        number, unit = value.strip(), 1
        for suffix, size in (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)):
            if number.endswith(suffix):
                number, unit = number.removesuffix(suffix), size
        value = int(number) * unit
    if isinstance(value, bool) or int(value) != value or value <= 0:
        raise ValueError
    return int(value)


def _read_directory(value: Any) -> pathlib.Path | None:
    return None if value is None or value == "" else pathlib.Path(value).expanduser()


USER_CACHE = "~/.cache/tracer/kernels"
"""A directory in the user's cache, which `XDG_CACHE_HOME` may have elsewhere: looked up when it is used."""


class Overrides(threading.local):
    """Values set by open `using` blocks of this thread. token: these values, hashable; None outside all blocks."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.token: tuple[Any, ...] | None = None


overrides = Overrides()


KEYED = (
    "default_float", "default_int", "deterministic", "index_errors", "loop_memory", "fp_contract", "vector_bits",
    "debug_division", "debug_nans", "debug_infs",
)  # fmt: skip
"""The settings that a traced or compiled program depends on."""
_keyed: Callable[[Any], tuple[Any, ...]] = operator.attrgetter(*KEYED)


class Config:
    """The settings; see the module's docstring.

    >>> config.default_float
    dtype('float64')
    >>> with config.using(default_float="float32"):
    ...     config.default_float
    dtype('float32')
    """

    default_float = Setting(
        "the dtype of Python floats, creation functions, initializers and random samplers",
        np.dtype("float64"), _read_float, '"float32" or "float64"',
    )  # fmt: skip
    default_int = Setting(
        "the dtype of integers from creation functions, lists and random samplers, and of dtype=int",
        np.dtype("int64"), _read_int, '"int32" or "int64"',
    )  # fmt: skip
    threads = Setting(
        "the number of threads of compiled code; 0 for as many as the process may use",
        0, _read_threads, "an integer from 0 to 2**31 - 1",
    )  # fmt: skip
    deterministic = Setting(
        "whether library calls, too, give the same bits for any number of threads",
        False, _read_bool, "True or False",
    )  # fmt: skip
    default_device = Setting("where arrays are made", "cpu", _read_device, '"cpu", "cuda:0" or "cuda-sim"')
    cache_dir = Setting["pathlib.Path | None"](
        "the directory of compiled programs kept between processes; None for no such directory",
        None, _read_directory, "a path, or None",
    )  # fmt: skip
    cache_size = Setting(
        "how many bytes that directory may take; the programs used longest ago go first",
        1 << 28, _read_count, "a number of bytes, 0 or more",
    )  # fmt: skip

    kernel_dir = Setting["pathlib.Path | str | None"](
        "the directory of the code that all programs share, kept between processes; None to keep it where programs are",
        USER_CACHE, _read_directory, "a path, or None",
    )  # fmt: skip
    index_errors = Setting(
        "whether indices out of bounds raise; if not, reads take the nearest element and writes are dropped, as in JAX",
        True, _read_bool, "True or False",
    )  # fmt: skip
    loop_memory = Setting[int | None](
        "the bytes that a while_loop's derivative in reverse may keep of its steps; None for all that it takes",
        None, _read_bytes, 'a number of bytes, such as 2**26 or "64 MiB", or None',
    )  # fmt: skip

    fp_contract = Setting(
        "whether compiled code rounds a product and the sum that it is added to once, where the machine can (FMA)",
        False, _read_bool, "True or False",
    )  # fmt: skip
    vector_bits = Setting[int | None](
        "the widest vectors that compiled code may use, in bits; None for the machine's; 0 for one element at a time",
        None, _read_bits, "0, 128, 256, 512 or None",
    )  # fmt: skip
    debug_division = Setting(
        "whether integer division and remainder by zero raise, with the line, eagerly and from compiled code",
        False, _read_bool, "True or False",
    )  # fmt: skip

    debug_nans = Setting(
        "whether an operation that makes a NaN of other numbers raises, with the line, eagerly and from compiled code",
        False, _read_bool, "True or False",
    )  # fmt: skip
    debug_infs = Setting(
        "whether an operation that makes an infinity of finite numbers raises, as debug_nans does",
        False, _read_bool, "True or False",
    )  # fmt: skip
    log_compiles = Setting(
        "whether each trace and compilation is logged with its reason and time, by the logger `tracer`",
        False, _read_bool, "True or False",
    )  # fmt: skip
    show_progress = Setting(
        "whether long compilations, and loops that are given progress, show a line in notebooks and on terminals",
        True, _read_bool, "True or False",
    )  # fmt: skip
    disable_jit = Setting(
        "whether jitted functions run as plain Python", False, _read_bool, "True or False",
    )  # fmt: skip

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})

    _values: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        self._setting(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        setting = self._setting(name)
        raise SettingError(message(f"config.{name} cannot be deleted", help=f"its default is {setting.default!r}"))

    def update(self, name: str, value: Any) -> None:
        """Set a setting by name. Raises SettingError for an unknown name or a value that is not accepted.

        JAX's names are taken too. `jax_debug_nans`, `jax_debug_infs`, `jax_log_compiles` and `jax_disable_jit` set the
        settings of these names. Other names of JAX are accepted with the value that holds here: `jax_enable_x64` True,
        `jax_platform_name` "cpu".
        """
        given: object = name
        if isinstance(given, str) and given in _ALIASES:
            setattr(self, _ALIASES[given], value)
        elif isinstance(given, str) and given in JAXS:
            _require_jaxs(given, value)
        else:
            self._setting(name)
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _ALIASES:
            return getattr(self, _ALIASES[name])
        if name in JAXS:
            return JAXS[name].values[0]
        raise AttributeError(f"config has no setting {name!r} (there are {', '.join(SETTINGS)})")

    @contextmanager
    def using(self, **values: Any) -> Iterator[None]:
        """Set one or more settings on this thread until the block ends."""
        checked = {name: self._setting(name).checked(value, f"config.{name}") for name, value in values.items()}
        outer = overrides.values
        gate.close()
        gate.override(1, device="default_device" in checked)
        self._set_here({**outer, **checked})
        if "threads" in checked:
            thread_count_in_force()
        try:
            yield
        finally:
            self._set_here(outer)
            if "threads" in checked:
                thread_count_in_force()
            gate.override(-1, device="default_device" in checked)
            gate.open()

    def _set_here(self, values: dict[str, Any]) -> None:
        overrides.values = values
        overrides.token = tuple(values.items()) or None

    def key(self) -> tuple[Any, ...]:
        """Return the values of the settings that programs depend on, as part of the key of a compiled program."""
        return _keyed(self)

    def _setting(self, name: object) -> Setting[Any]:
        setting = SETTINGS.get(name) if isinstance(name, str) else None
        if setting is None:
            raise SettingError(
                message(f"config has no setting {_shown(name)}", help=f"there are {', '.join(SETTINGS)}")
            )
        return setting

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in SETTINGS)})"


class Jaxs(NamedTuple):
    """Setting of JAX: its accepted values, whose first one is read, and the reason and remedy for other values."""

    values: tuple[Any, ...]
    why: str
    remedy: str


_ALIASES = {f"jax_{name}": name for name in ("debug_nans", "debug_infs", "log_compiles", "disable_jit")}
_WIDE = "float64 and int64 are always there, and nothing is narrowed silently"
_PLATFORM = "this version computes on the CPU"
_EXACT = (None, "default", "high", "highest", "float32", "tensorfloat32", "bfloat16", "fastest", "bfloat16_3x")
JAXS = {
    "jax_enable_x64": Jaxs((True,), _WIDE, 'for float32 models, config.default_float = "float32"'),
    "jax_platform_name": Jaxs(("cpu", "", None), _PLATFORM, 'leave it out, or say "cpu"'),
    "jax_platforms": Jaxs(("cpu", "", None), _PLATFORM, 'leave it out, or say "cpu"'),
    "jax_explain_cache_misses": Jaxs((False,), "nothing is logged", "f.explain() says when jit of f compiled, and why"),
    "jax_default_matmul_precision": Jaxs(_EXACT, "products are as exact as their dtype", "cast the operands"),
    "jax_default_prng_impl": Jaxs(("threefry2x32",), "there is one generator", "leave it out"),
    "jax_threefry_partitionable": Jaxs((True,), "streams are those of JAX's default", "leave it out"),
    "jax_enable_custom_prng": Jaxs((True,), "random.key makes typed keys, random.PRNGKey words", "leave it out"),
    "jax_numpy_rank_promotion": Jaxs(("allow",), "arrays broadcast as in NumPy", "compare x.ndim yourself"),
    "jax_numpy_dtype_promotion": Jaxs(("standard",), "dtypes are promoted as docs/numpy.md says", "cast with .astype"),
    "jax_check_tracer_leaks": Jaxs((True, False), "a leaked array says so when it is used", "leave it out"),
}


def _require_jaxs(name: str, value: Any) -> None:
    setting = JAXS[name]
    if not any(value is v or (type(value) in (bool, int, str) and value == v) for v in setting.values):
        raise SettingError(
            message(f"config: {name} is {setting.values[0]!r}, not {_shown(value)}", setting.why, help=setting.remedy)
        )


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Enter a block with 64 bits enabled, as they always are. Raises SettingError for False.

    new_val: True.

    >>> with tracer.enable_x64():
    ...     tnp.zeros(2).dtype
    dtype('float64')
    """
    _require_jaxs("jax_enable_x64", new_val)
    yield


@contextmanager
def default_matmul_precision(new_val: Any = None) -> Iterator[None]:
    """Enter a block with less exact products, by JAX's names. Products are always as exact as their dtype here.

    new_val: "float32", "bfloat16", "highest" and so on. Raises SettingError for any other value.

    >>> with tracer.default_matmul_precision("float32"):
    ...     tnp.ones(2) @ tnp.ones(2)
    Array(2., f64)
    """
    _require_jaxs("jax_default_matmul_precision", new_val)
    yield


SETTINGS = {name: value for name, value in vars(Config).items() if isinstance(value, Setting)}
config = Config()
