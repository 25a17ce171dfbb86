"""Settings: defaults, values by attribute, by name, by block and from the environment."""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.grids import covering, each
from tracer import config, devices
from tracer import numpy as tnp
from tracer.errors import DeviceError, SettingError
from tracer.settings import JAXS, SETTINGS, Config, default_matmul_precision, enable_x64


def test_the_defaults_need_no_environment() -> None:
    config = Config()
    assert config.default_float == np.dtype("float64")
    assert (config.threads, config.deterministic, config.default_device, config.cache_dir) == (0, False, "cpu", None)


@each(
    ("name", "given", "kept"),
    [
        ("default_float", "float32", np.dtype("float32")),
        ("default_float", np.float64, np.dtype("float64")),
        ("threads", "3", 3),
        ("deterministic", "true", True),
        ("default_device", "cpu:0", "cpu"),
        ("default_device", devices()[0], "cpu"),
        ("loop_memory", "64 MiB", 2**26),
        ("cache_dir", "/var/cache", Path("/var/cache")),
        ("cache_dir", None, None),
        ("kernel_dir", "", None),
    ],
)
def test_a_setting_keeps_the_canonical_value(name: str, given: Any, kept: Any) -> None:
    config = Config()
    config.update(name, given)
    assert getattr(config, name) == kept


@each(
    ("name", "value"),
    [
        ("default_float", "float16"), ("default_float", "single precision"), ("default_float", None),
        ("threads", -1), ("threads", 1.5), ("threads", True), ("deterministic", "perhaps"),
        ("default_device", "tpu"), ("default_device", "cuda:x"), ("default_device", "cpu:1"), ("cache_dir", 7),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(name: str, value: Any) -> None:
    config = Config()
    before = getattr(config, name)
    with pytest.raises(SettingError, match=f"config.{name} does not take"):
        setattr(config, name, value)
    assert getattr(config, name) == before


class Hostile:
    """Value whose every conversion fails in its own way."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __index__ = __int__ = __float__ = __fspath__ = __len__ = __str__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Hostile()"


STRANGE = (
    math.inf, math.nan, -(10**30), 10**30, 1j, "f4,f4", "", "~nobody/x", b"x", [], {}, (1, 2), np.zeros(3),
    np.float32(1.5), object, Hostile(), "cpu:x", ":", None, True,
)  # fmt: skip


@each(("name", "value"), covering(SETTINGS, STRANGE, least=120))
def test_values_of_any_type_are_taken_or_refused_by_a_setting_error(name: str, value: Any) -> None:
    config = Config()
    for change in (lambda: config.update(name, value), lambda: config.using(**{name: value}).__enter__()):
        before = getattr(config, name)
        refusal = ""
        try:
            change()
        except SettingError as error:
            refusal = str(error)
        if refusal:
            assert f"config.{name} does not take" in refusal
            assert getattr(config, name) is before
        else:
            assert isinstance(getattr(config, name), bool | int | str | None | Path | np.dtype)


@each("name", [5, None, "", "_values", "_local", "__class__", "update", "key", (), [], np.zeros(2)], ids=repr)
def test_names_of_any_type_that_are_no_setting_are_refused(name: Any) -> None:
    config = Config()
    changes = [lambda: config.update(name, 1)]
    if isinstance(name, str):
        changes += [lambda: setattr(config, name, {}), lambda: config.using(**{name: 1}).__enter__()]
    for change in changes:
        with pytest.raises(SettingError, match=r"^config has no setting "):
            change()
    assert config.threads == 0


def test_settings_of_jax_take_values_of_any_type_or_refuse_them() -> None:
    for name in JAXS:
        for value in STRANGE:
            with suppress(SettingError):
                Config().update(name, value)


def test_a_setting_cannot_be_deleted() -> None:
    with pytest.raises(SettingError, match=r"^config.threads cannot be deleted\n  help: its default is 0\n  more: "):
        del Config().threads


@pytest.mark.parametrize("name", ["cuda", "gpu:1"])
def test_a_missing_default_device_is_refused_where_an_array_is_made(name: str) -> None:
    with (
        config.using(default_device=name),
        pytest.raises(DeviceError, match=r"^zeros at test_settings.py:\d+: no device 'cuda:"),
    ):
        tnp.zeros(2)


def test_the_error_says_what_the_setting_is_and_what_it_takes() -> None:
    with pytest.raises(SettingError) as caught:
        Config().update("threads", -1)
    assert str(caught.value) == (
        "config.threads does not take -1\n"
        "  it is the number of threads of compiled code; 0 for as many as the process may use\n"
        "  help: give an integer from 0 to 2**31 - 1"
    )


def test_an_unknown_setting_is_an_error_that_lists_the_settings() -> None:
    config = Config()
    with pytest.raises(SettingError) as caught:
        config.defualt_float = "float32"
    assert str(caught.value) == (f"config has no setting 'defualt_float'\n  help: there are {', '.join(SETTINGS)}")
    with pytest.raises(SettingError, match="no setting 'defualt_float'"), config.using(defualt_float="float32"):
        pass


def test_a_block_sets_for_this_thread_and_restores() -> None:
    config = Config()
    seen = []
    with config.using(default_float="float32", threads=2):
        other = threading.Thread(target=lambda: seen.append(config.default_float))
        other.start()
        other.join()
        with config.using(default_float="float64"):
            assert (config.default_float, config.threads) == (np.dtype("float64"), 2)
        assert config.default_float == np.dtype("float32")
    assert seen == [np.dtype("float64")]
    assert (config.default_float, config.threads) == (np.dtype("float64"), 0)


def test_the_environment_is_read_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config()
    monkeypatch.setenv("TRACER_DEFAULT_FLOAT", "float32")
    assert config.default_float == np.dtype("float32")
    monkeypatch.setenv("TRACER_THREADS", "many")
    with pytest.raises(SettingError, match="TRACER_THREADS does not take 'many'"):
        _ = config.threads


def test_jax_enable_x64_is_accepted_as_true_alone() -> None:
    config = Config()
    config.update("jax_enable_x64", True)
    with pytest.raises(SettingError, match="jax_enable_x64 is True, not False"):
        config.update("jax_enable_x64", False)


@each("name", JAXS)
def test_settings_of_jax_s_are_taken_at_their_values_here(name: str) -> None:
    config = Config()
    for value in JAXS[name].values:
        config.update(name, value)
    assert getattr(config, name) == JAXS[name].values[0]
    with pytest.raises(SettingError, match=f"^config: {name} is .*, not 'other'\n  .*\n  help: "):
        config.update(name, "other")


def test_blocks_of_jax_s_settings() -> None:
    with enable_x64(), enable_x64(True), default_matmul_precision("highest"):
        pass
    with pytest.raises(SettingError, match="jax_enable_x64"), enable_x64(False):
        pass
    with pytest.raises(AttributeError, match="config has no setting 'jax_no_such'"):
        Config().jax_no_such  # noqa: B018


def test_the_key_changes_with_what_tracing_reads() -> None:
    config = Config()
    before = config.key()
    with config.using(default_float="float32"):
        assert config.key() != before
    with config.using(threads=2):
        assert config.key() == before
