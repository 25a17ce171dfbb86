"""PyTorch's tensors and modules become arrays and models, and back, with the results that PyTorch computes."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import errors, interop, nn, random

KEY = random.key(0)
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "bfloat16",
          "float8_e4m3fn", "float8_e5m2")  # fmt: skip


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_keep_dtype_shape_and_values(dtype: str, shape: tuple[int, ...], torch: Any) -> None:
    tensor = (torch.rand(shape) * 3).to(getattr(torch, dtype))
    array = interop.from_torch({"x": [tensor, None, "text"]})["x"][0]
    assert str(array.dtype) == dtype
    back = interop.to_torch({"x": [array]})["x"][0]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    assert torch.equal(back.to(wide), tensor.to(wide))


def test_arrays_share_memory_on_request_alone(torch: Any) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    apart, shared = interop.from_torch(tensor.T), interop.from_torch(tensor, copy=False)
    assert shared._value.ctypes.data == tensor.data_ptr()
    out = interop.to_torch(shared)
    out[0, 0] = tensor[0, 1] = 9.0
    assert apart.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert shared[0, 0] == 0
    assert interop.from_torch(tensor.requires_grad_()).tolist() == tensor.tolist()
    assert interop.from_torch(torch.ones(2, dtype=torch.complex64).conj() * 1j).tolist() == [1j, 1j]


def test_tensors_that_arrays_cannot_hold(torch: Any) -> None:
    with pytest.raises(errors.DTypeError, match=r"from_torch at .* takes dense tensors"):
        interop.from_torch(torch.eye(2).to_sparse())
    with pytest.raises(errors.DTypeError, match="PyTorch has no dtype for int4"):
        interop.to_torch(tnp.asarray([1, 2]).astype("int4"))


def test_modules_of_pytorch_compute_what_models_do_with_their_weights(torch: Any) -> None:
    theirs, keys = torch.nn, nn.Keys(KEY)
    normed = theirs.utils.parametrizations
    exact = lambda x: nn.gelu(x, approximate=False)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        layer = theirs.TransformerEncoderLayer(4, 2, 8, dropout=0, batch_first=True, activation="gelu")
        encoder = theirs.TransformerEncoder(layer, 2)
    pairs = [
        (encoder, nn.TransformerEncoder(4, 2, 2, hidden=8, norm_first=False, activation=exact, key=next(keys))),
        (
            theirs.Sequential(theirs.Linear(4, 3), theirs.Tanh(), normed.weight_norm(theirs.Linear(3, 2))),
            nn.Sequential(nn.Linear(4, 3, key=next(keys)), nn.tanh, nn.WeightNorm(nn.Linear(3, 2, key=next(keys)))),
        ),
        (normed.spectral_norm(theirs.Linear(4, 3)), nn.SpectralNorm(nn.Linear(4, 3, key=next(keys)), key=next(keys))),
    ]
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    for module, model in pairs:
        module = module.double().eval()
        loaded = interop.from_torch(module, nn.cast(model, "float64"))
        np.testing.assert_allclose(loaded(x.numpy()), module(x).detach().numpy(), rtol=1e-12, atol=1e-12)
        state = interop.to_torch(loaded)
        assert all(torch.equal(state[name], tensor) for name, tensor in module.state_dict().items())
        module.load_state_dict(state)


def test_hugging_faces_conv1d_is_told_by_its_class(torch: Any) -> None:
    class Conv1D(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, nf: int, nx: int) -> None:
            super().__init__()
            self.nf, self.nx = nf, nx
            self.weight, self.bias = torch.nn.Parameter(torch.randn(nx, nf)), torch.nn.Parameter(torch.zeros(nf))

    module = torch.nn.Sequential(Conv1D(3, 3), torch.nn.Linear(3, 3))
    keys = nn.Keys(KEY)
    loaded = interop.from_torch(module, nn.Sequential(nn.Linear(3, 3, key=next(keys)), nn.Linear(3, 3, key=next(keys))))
    np.testing.assert_array_equal(loaded[0].weight, module[0].weight.detach().numpy().T)
    np.testing.assert_array_equal(loaded[1].weight, module[1].weight.detach().numpy())


def test_pytorch_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"to_torch at .*\n  help: pip install torch"):
        interop.to_torch(tnp.ones(2))
