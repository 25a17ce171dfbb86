"""What tools/torch_layers.py computes by PyTorch: layers, their settings and inputs. Without tracer and PyTorch."""

import zlib
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """Layer by our name with our arguments, the shape of its input, and whether it is called in training."""

    layer: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...]
    training: bool = False


def random_state(name: str) -> Any:
    """Numbers of a stream that is frozen."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def drawn(case: str, name: str, shape: tuple[int, ...]) -> Any:
    """The input, cotangent, parameter or state `name` of a case; variances are positive."""
    x = random_state(f"{case} {name}").normal(size=shape)
    return np.abs(x) + 0.5 if name.endswith("running_var") else x


def digest(x: Any) -> Any:
    """The elements of a small array, sums with random weights of a large one."""
    x = np.asarray(x, "float64").ravel()
    return x if x.size <= 12 else random_state(f"digest {x.size}").normal(size=(6, x.size)) @ x


def _convolutions() -> Any:
    draw = random_state("convolutions")
    for rank, count in ((1, 5), (2, 6), (3, 2)):
        for n in range(count):
            groups = int(draw.choice([1, 1, 2, 3]))
            size = [int(k) for k in draw.randint(1, 4, rank)]
            kwargs: dict[str, Any] = {
                "dilation": [int(k) for k in draw.randint(1, 3, rank)], "groups": groups,
                "bias": bool(draw.rand() < 0.7),
            }  # fmt: skip
            wide = [(k - 1) * d + 1 for k, d in zip(size, kwargs["dilation"], strict=True)]
            sizes = [int(k + draw.randint(2, 6)) for k in wide]
            if n == 0:
                kwargs["padding"] = "same"
            else:
                kwargs["stride"] = [int(k) for k in draw.randint(1, 4, rank)]
                kwargs["padding"] = [int(k) for k in draw.randint(0, 3, rank)]
            kwargs["padding_mode"] = ("zeros", "reflect", "replicate", "circular", "zeros", "zeros")[n % 6]
            features = groups * int(draw.randint(1, 3)), groups * int(draw.randint(1, 3))
            batch = int(draw.randint(1, 4))
            yield Case(f"Conv{rank}d", (*features, size), kwargs, (batch, features[0], *sizes))
        for _ in range(count):
            groups = int(draw.choice([1, 1, 2, 3]))
            size = [int(k) for k in draw.randint(1, 4, rank)]
            stride, dilation = ([int(k) for k in draw.randint(1, 4, rank)] for _ in range(2))
            kwargs = {
                "stride": stride, "dilation": dilation, "groups": groups, "bias": bool(draw.rand() < 0.7),
                "padding": [int(min(draw.randint(0, 3), (k - 1) * d)) for k, d in zip(size, dilation, strict=True)],
                "output_padding": [int(draw.randint(0, max(s, d))) for s, d in zip(stride, dilation, strict=True)],
            }  # fmt: skip
            features = groups * int(draw.randint(1, 3)), groups * int(draw.randint(1, 3))
            shape = (int(draw.randint(1, 4)), features[0], *(int(k) for k in draw.randint(2, 5, rank)))
            yield Case(f"ConvTranspose{rank}d", (*features, size), kwargs, shape)
    yield Case("Conv2d", (2, 3, 3), {"padding": 1}, (2, 5, 4))  # without a batch
    yield Case("ConvTranspose1d", (2, 3, 4), {"stride": 2}, (2, 5))


def _pools() -> Any:
    draw = random_state("pools")
    for rank, count in ((1, 2), (2, 3), (3, 1)):
        for n in range(count):
            size = [int(k) for k in draw.randint(2, 4, rank)]
            kwargs: dict[str, Any] = {
                "stride": [int(k) for k in draw.randint(1, 4, rank)],
                "padding": [int(k) for k in draw.randint(0, 2, rank)],
                "ceil_mode": bool(n % 2),
            }
            shape = (int(draw.randint(1, 3)), 2, *(int(k) for k in draw.randint(5, 8, rank)))
            dilation = [int(k) for k in draw.randint(1, 3, rank)]
            yield Case(f"MaxPool{rank}d", (size,), {**kwargs, "dilation": dilation}, shape)
            yield Case(f"AvgPool{rank}d", (size,), {**kwargs, "count_include_pad": bool(draw.rand() < 0.5)}, shape)
        for output in ([3, 5, 2][:rank], 1, [4] if rank == 1 else [None, 2, 4][:rank]):
            shape = (2, 2, *(int(k) for k in draw.randint(5, 8, rank)))
            yield Case(f"AdaptiveAvgPool{rank}d", (output,), {}, shape)
            yield Case(f"AdaptiveMaxPool{rank}d", (output,), {}, shape)
    yield Case("AvgPool2d", (2,), {}, (3, 5, 4))


def _norms() -> Any:
    for shape in ((4, 3), (2, 3, 5), (2, 3, 2, 4), (2, 3, 2, 2, 3)):
        for training in (False, True):
            affine = len(shape) != 3
            yield Case("BatchNorm", (3,), {"affine": affine, "momentum": 0.3, "eps": 1e-3}, shape, training)
    yield Case("LayerNorm", (5,), {}, (2, 3, 5))
    yield Case("LayerNorm", ([3, 5],), {"bias": False, "eps": 1e-2}, (2, 3, 5))
    yield Case("LayerNorm", (5,), {"affine": False}, (2, 5))
    yield Case("RMSNorm", (5,), {}, (2, 3, 5))
    yield Case("RMSNorm", ([3, 5],), {"affine": False, "eps": 1e-2}, (2, 3, 5))
    yield Case("GroupNorm", (2, 6), {}, (2, 6, 4))
    yield Case("GroupNorm", (3, 6), {"affine": False, "eps": 1e-2}, (2, 6, 2, 3))
    yield Case("InstanceNorm", (3,), {"affine": True}, (2, 3, 4))
    yield Case("InstanceNorm", (3,), {}, (2, 3, 4, 2))
    for training in (False, True):
        yield Case("SpectralNorm", ("Linear", 5, 3), {}, (2, 5), training)
        yield Case("SpectralNorm", ("ConvTranspose2d", 2, 3, 2), {"iterations": 2}, (2, 2, 3, 3), training)
    yield Case("WeightNorm", ("Linear", 5, 3), {}, (2, 5))
    yield Case("WeightNorm", ("Conv1d", 2, 3, 2), {"axis": 1}, (2, 2, 4))
    yield Case("WeightNorm", ("Conv1d", 2, 3, 2), {"axis": None}, (2, 2, 4))


def _shapes() -> Any:
    for scale, mode, shape in (
        (2, "nearest", (2, 3, 4)), (3, "nearest", (1, 2, 3, 2)), (1.7, "nearest", (1, 2, 5, 7)),
        ([1.5, 2.0], "bilinear", (1, 2, 4, 5)), (2, "bilinear", (2, 2, 3, 4)), (2.3, "linear", (2, 1, 5)),
        (0.6, "bilinear", (1, 2, 7, 5)), (2, "trilinear", (1, 1, 2, 3, 2)), (2, "nearest", (1, 1, 2, 3, 2)),
    ):  # fmt: skip
        yield Case("Upsample", (scale, mode), {}, shape)
    yield Case("PixelShuffle", (3,), {}, (2, 18, 2, 3))
    yield Case("Flatten", (), {}, (2, 3, 4))
    yield Case("Flatten", (2,), {}, (2, 3, 4, 2))
    yield Case("PReLU", (), {}, (2, 3, 4))
    yield Case("PReLU", (3,), {"init": 0.1}, (2, 3, 4))
    for mode in ("zeros", "reflect", "replicate", "circular"):
        yield Case("Pad", ([[1, 2], [0, 3]], mode), {}, (2, 2, 4, 5))


CASES = {f"{n} {case.layer}": case for n, case in enumerate([*_convolutions(), *_pools(), *_norms(), *_shapes()])}


class LossCase(NamedTuple):
    """Loss by our name with our keywords, and its operands: a kind and a shape each. See `operand`."""

    loss: str
    kwargs: dict[str, Any]
    operands: tuple[tuple[str, tuple[int, ...]], ...]


CLASSES = 5
WEIGHTS = [0.5, 1.0, 2.0, 0.0, 1.5]
DIFFERENTIATED = ("normal", "logarithms", "probabilities")


def operand(case: str, place: int, kind: str, shape: tuple[int, ...]) -> Any:
    """The operand of a loss at a place."""
    draw = random_state(f"{case} {place}")
    match kind:
        case "labels":
            return draw.randint(0, CLASSES, shape)
        case "some ignored":
            return np.where(draw.rand(*shape) < 0.4, -100, draw.randint(0, CLASSES, shape))
        case "not blank":
            return draw.randint(1, CLASSES, shape)
        case "bits":
            return draw.randint(0, 2, shape)
        case "signs":
            return 2 * draw.randint(0, 2, shape) - 1
        case "probabilities" | "logarithms":
            x = np.exp(draw.normal(size=shape))
            x = x / x.sum(-1, keepdims=True)
            return np.log(x) if kind == "logarithms" else x
        case _:
            return 2 * draw.normal(size=shape)


def _losses() -> Any:
    for kwargs in ({}, {"smoothing": 0.2}, {"weights": WEIGHTS}, {"weights": WEIGHTS, "smoothing": 0.3}):
        logits = ("normal", (2, 3, CLASSES))
        yield LossCase("cross_entropy", kwargs, (logits, ("labels", (2, 3))))
        yield LossCase("cross_entropy", {**kwargs, "ignore": -100}, (logits, ("some ignored", (2, 3))))
        yield LossCase("cross_entropy", kwargs, (logits, ("probabilities", (2, 3, CLASSES))))
    logs = ("logarithms", (4, CLASSES))
    yield LossCase("nll", {}, (logs, ("labels", (4,))))
    yield LossCase("nll", {"ignore": -100, "weights": WEIGHTS}, (logs, ("some ignored", (4,))))
    yield LossCase("kl_divergence", {}, (logs, ("probabilities", (4, CLASSES))))
    pair = (("normal", (3, 4)), ("normal", (3, 4)))
    yield LossCase("binary_cross_entropy", {"axes": ()}, (("normal", (3, 4)), ("bits", (3, 4))))
    yield LossCase("focal", {"axes": (), "alpha": 0.25}, (("normal", (3, 4)), ("bits", (3, 4))))
    yield LossCase("focal", {"axes": (), "gamma": 1.5}, (("normal", (3, 4)), ("bits", (3, 4))))
    yield LossCase("hinge", {"axes": ()}, (("normal", (3, 4)), ("signs", (3, 4))))
    for name, kwargs in (("mse", {}), ("l1", {}), ("huber", {}), ("huber", {"delta": 2.5})):
        yield LossCase(name, {**kwargs, "axes": ()}, pair)
    yield LossCase("cosine_similarity", {}, pair)
    yield LossCase("cosine_similarity", {"axis": 0}, pair)
    yield LossCase("triplet", {}, (*pair, pair[0]))
    yield LossCase("triplet", {"swap": True, "margin": 3.0, "p": 3.0}, (*pair, pair[0]))
    yield LossCase("ctc", {}, (("normal", (3, 7, CLASSES)), ("not blank", (3, 3))))
    short = {"lengths": [9, 5, 4, 3], "label_lengths": [3, 2, 4, 0]}
    yield LossCase("ctc", short, (("normal", (4, 9, CLASSES)), ("not blank", (4, 4))))
    yield LossCase(
        "linear_cross_entropy", {"block": 2}, (("normal", (4, 3)), ("normal", (CLASSES, 3)), ("labels", (4,)))
    )


LOSSES = {f"{n} {case.loss}": case for n, case in enumerate(_losses())}
