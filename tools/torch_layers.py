"""Write tests/nn/torch_layers.npz: values and gradients of PyTorch's layers and losses in float64.

Run with a Python that has PyTorch:  python -m tools.torch_layers
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.nn.torch_cases import CASES, DIFFERENTIATED, LOSSES, digest, drawn, operand

TARGET = Path(__file__).parent.parent / "tests" / "nn" / "torch_layers.npz"
# Names of parameters and state where ours are others
OURS = {
    "SpectralNorm": {
        "parametrizations.weight.original": "layer.weight", "bias": "layer.bias",
        "parametrizations.weight.0._u": "u", "parametrizations.weight.0._v": "v",
    },
    "WeightNorm": {
        "parametrizations.weight.original0": "g", "parametrizations.weight.original1": "layer.weight",
        "bias": "layer.bias",
    },
}  # fmt: skip
KEYWORDS = {"affine": "elementwise_affine"}
MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class Pad(nn.Module):
    """`functional.pad` with widths in the order of the axes."""

    def __init__(self, widths, mode):
        super().__init__()
        self.widths, self.mode = [n for pair in reversed(widths) for n in pair], MODES[mode]

    def forward(self, x):
        return functional.pad(x, self.widths, self.mode)


def made(case):
    """PyTorch's layer of a case."""
    args, kwargs, rank = case.args, case.kwargs, len(case.shape) - 2
    match case.layer:
        case "Upsample":
            scale, mode = args
            scale = tuple(scale) if isinstance(scale, list) else scale
            return nn.Upsample(scale_factor=scale, mode=mode)
        case "Pad":
            return Pad(*args)
        case "PReLU":
            return nn.PReLU(*args, **kwargs)
        case "BatchNorm" | "InstanceNorm":
            return getattr(nn, f"{case.layer}{max(rank, 1)}d")(*args, **kwargs)
        case "LayerNorm" | "RMSNorm":
            kwargs = {"eps": 1e-5} | {KEYWORDS.get(name, name): value for name, value in kwargs.items()}
            return getattr(nn, case.layer)(*args, **kwargs)
        case "SpectralNorm":
            layer = getattr(nn, args[0])(*args[1:])
            return parametrizations.spectral_norm(layer, n_power_iterations=kwargs.get("iterations", 1))
        case "WeightNorm":
            return parametrizations.weight_norm(getattr(nn, args[0])(*args[1:]), dim=kwargs.get("axis", 0))
        case "Flatten":
            return nn.Flatten(*args)
        case _:
            return getattr(nn, case.layer)(*args, **kwargs)


def results(name, case):
    """The digests of a layer's value, gradients, and state."""
    layer = made(case).double().train(case.training)
    ours = OURS.get(case.layer, {})
    with torch.no_grad():
        for own, value in [*layer.named_parameters(), *layer.named_buffers()]:
            if own != "num_batches_tracked":
                value.copy_(torch.from_numpy(drawn(name, ours.get(own, own), tuple(value.shape))))
    x = torch.from_numpy(drawn(name, "x", case.shape)).requires_grad_()
    y = layer(x)
    (y * torch.from_numpy(drawn(name, "cotangent", tuple(y.shape)))).sum().backward()
    found = {"y": y, "x": x.grad}
    found |= {ours.get(own, own): value.grad for own, value in layer.named_parameters()}
    if case.training:
        found |= {ours.get(own, own): value for own, value in layer.named_buffers() if own != "num_batches_tracked"}
    return {f"{name}|{what}": digest(value.detach().numpy()) for what, value in found.items()}


def classes_second(logits):
    """Logits with their classes as axis 1."""
    return logits.movedim(-1, 1)


def cross_entropy(logits, labels, *, smoothing=0.0, ignore=-100, weights=None):
    """`functional.cross_entropy` with classes as the last axis."""
    labels = classes_second(labels) if labels.is_floating_point() else labels
    weights = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    return functional.cross_entropy(
        classes_second(logits), labels, weights, label_smoothing=smoothing, ignore_index=ignore, reduction="none"
    )


def nll(logs, labels, *, ignore=-100, weights=None):
    """`functional.nll_loss`."""
    weights = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    return functional.nll_loss(logs, labels, weights, ignore_index=ignore, reduction="none")


def focal(logits, labels, *, gamma=2.0, alpha=-1.0, axes=()):
    """torchvision's sigmoid_focal_loss, by its paper's formula."""
    y = labels.double()
    p = logits.sigmoid()
    chosen = p * y + (1 - p) * (1 - y)
    factor = alpha * y + (1 - alpha) * (1 - y) if alpha >= 0 else 1
    return -factor * (1 - chosen) ** gamma * chosen.log()


def ctc(logits, labels, *, lengths=None, label_lengths=None):
    """`functional.ctc_loss` of logits."""
    batch, steps, _ = logits.shape
    lengths = torch.tensor(lengths or [steps] * batch)
    label_lengths = torch.tensor(label_lengths or [labels.shape[1]] * batch)
    logs = logits.log_softmax(-1).transpose(0, 1)
    loss, finite = (
        functional.ctc_loss(logs, labels, lengths, label_lengths, reduction="none", zero_infinity=flag)
        for flag in (False, True)
    )
    return torch.where(loss.isinf(), loss.detach(), finite)  # its gradients of infinite losses are NaN


def binary(logits, labels, axes=()):
    """`functional.binary_cross_entropy_with_logits`."""
    return functional.binary_cross_entropy_with_logits(logits, labels.double(), reduction="none")


THEIRS = {
    "cross_entropy": cross_entropy, "nll": nll, "focal": focal, "ctc": ctc, "binary_cross_entropy": binary,
    "kl_divergence": lambda q, p: functional.kl_div(q, p, reduction="none").sum(-1),
    "hinge": lambda x, y, axes: (1 - x * y).clamp_min(0),
    "mse": lambda x, y, axes: functional.mse_loss(x, y, reduction="none"),
    "l1": lambda x, y, axes: functional.l1_loss(x, y, reduction="none"),
    "huber": lambda x, y, axes, delta=1.0: functional.huber_loss(x, y, reduction="none", delta=delta),
    "cosine_similarity": lambda x, y, axis=-1, eps=1e-8: functional.cosine_similarity(x, y, axis, eps),
    "triplet": lambda *xs, **kwargs: functional.triplet_margin_loss(*xs, reduction="none", **kwargs),
    "linear_cross_entropy": lambda x, w, labels, block: cross_entropy(x @ w.T, labels),
}  # fmt: skip


def loss_results(name, case):
    """The digests of a loss's value and gradients."""
    operands = [torch.from_numpy(operand(name, n, *of)) for n, of in enumerate(case.operands)]
    for x, (kind, _) in zip(operands, case.operands, strict=True):
        x.requires_grad_(kind in DIFFERENTIATED)
    loss = THEIRS[case.loss](*operands, **case.kwargs)
    cotangent = torch.from_numpy(drawn(name, "cotangent", tuple(loss.shape)))
    loss.backward(cotangent)
    found = {"loss": loss} | {str(n): x.grad for n, x in enumerate(operands) if x.requires_grad}
    return {f"{name}|{what}": digest(value.detach().numpy()) for what, value in found.items()}


if __name__ == "__main__":
    stored = {}
    for name, case in LOSSES.items():
        stored |= loss_results(name, case)
    for name, case in CASES.items():
        stored |= results(name, case)
    lengths = {what: len(value) for what, value in stored.items()}
    np.savez_compressed(
        TARGET, torch=torch.__version__, names="\n".join(stored), lengths=list(lengths.values()),
        values=np.concatenate(list(stored.values())),
    )  # fmt: skip
    print(len(CASES) + len(LOSSES), "cases,", TARGET.stat().st_size, "bytes")
