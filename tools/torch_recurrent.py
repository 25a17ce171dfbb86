"""Write tests/nn/torch_recurrent.npz: what PyTorch's recurrent, attention and transformer layers give, with gradients.

Run with a Python that has PyTorch:  python -m tools.torch_recurrent
"""

import json
import random

import numpy as np
import torch
from torch import nn

from tests.nn.torch_numbers import STORED, numbers

torch.set_default_dtype(torch.float64)


def filled(module):
    """The module with numbers for weights that belong to their names."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(numbers(name, tuple(parameter.shape))))
    return module


def given(name, shape, wanted=True):
    """An input with numbers that belong to its name."""
    return torch.from_numpy(numbers(name, tuple(shape))).requires_grad_(wanted)


def results(outputs, inputs, module):
    """Outputs, and the gradients of their weighted sum by inputs and weights."""
    total = sum((out * given(f"out{n}", out.shape, False)).sum() for n, out in enumerate(outputs))
    total.backward()
    found = {f"out{n}": out.detach().numpy() for n, out in enumerate(outputs)}
    found |= {f"grad {name}": x.grad.numpy() for name, x in inputs.items()}
    return found | {f"grad {name}": p.grad.numpy() for name, p in module.named_parameters()}


def recurrent_cases():
    """Drawn configurations of RNN, GRU, LSTM, all with few numbers."""
    draw = random.Random(20)
    for n in range(30):
        t = draw.choice([1, 2, 4, 5])
        b = draw.choice([1, 2, 3])
        lengths = [draw.randint(1, t) for _ in range(b)] if draw.random() < 0.5 else None
        yield {
            "kind": ["RNN", "GRU", "LSTM"][n % 3], "n": draw.choice([1, 2, 3]), "hidden": draw.choice([1, 2, 3]),
            "layers": draw.choice([1, 1, 2, 3]), "bidirectional": draw.random() < 0.5, "bias": draw.random() < 0.75,
            "relu": n % 3 == 0 and draw.random() < 0.4, "t": t, "b": b, "lengths": lengths,
            "state": draw.random() < 0.6,
        }  # fmt: skip


def recurrent(case):
    """Outputs, last states and gradients of a configuration."""
    options = {"nonlinearity": "relu"} if case["relu"] else {}
    module = filled(
        getattr(nn, case["kind"])(
            case["n"], case["hidden"], case["layers"], bidirectional=case["bidirectional"], bias=case["bias"],
            batch_first=True, **options,
        )
    )  # fmt: skip
    inputs = {"x": given("x", (case["b"], case["t"], case["n"]))}
    state = None
    if case["state"]:
        shape = (case["layers"] * (1 + case["bidirectional"]), case["b"], case["hidden"])
        inputs |= {"h": given("h", shape)} | ({"c": given("c", shape)} if case["kind"] == "LSTM" else {})
        state = (inputs["h"], inputs["c"]) if case["kind"] == "LSTM" else inputs["h"]
    x = inputs["x"]
    if case["lengths"] is not None:
        x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(case["lengths"]), batch_first=True, enforce_sorted=False)
    ys, last = module(x, state)
    if case["lengths"] is not None:
        ys = nn.utils.rnn.pad_packed_sequence(ys, batch_first=True, total_length=case["t"])[0]
    return results([ys, *(last if case["kind"] == "LSTM" else [last])], inputs, module)


def cell_cases():
    """One cell of each kind, with and without bias."""
    for kind in ("RNNCell", "GRUCell", "LSTMCell"):
        yield {"kind": kind, "n": 3, "hidden": 2, "bias": kind != "GRUCell", "b": 2}


def cell(case):
    """The next state of a configuration and gradients."""
    module = filled(getattr(nn, case["kind"])(case["n"], case["hidden"], bias=case["bias"]))
    shape = (case["b"], case["hidden"])
    inputs = {"x": given("x", (case["b"], case["n"])), "h": given("h", shape)}
    if case["kind"] == "LSTMCell":
        inputs["c"] = given("c", shape)
        return results(module(inputs["x"], (inputs["h"], inputs["c"])), inputs, module)
    return results([module(inputs["x"], inputs["h"])], inputs, module)


def attention_cases():
    """Configurations of multi-head attention: own and other sources, masks, paddings."""
    draw = random.Random(21)
    for _ in range(16):
        context = draw.random() < 0.4
        yield {
            "dim": draw.choice([2, 4]), "heads": draw.choice([1, 2]), "bias": draw.random() < 0.7,
            "b": draw.choice([1, 2]), "t": draw.choice([1, 3, 4]), "context": draw.choice([2, 5]) if context else None,
            "context_dim": draw.choice([3, None]) if context else None,
            "causal": not context and draw.random() < 0.5, "mask": draw.random() < 0.5,
        }  # fmt: skip


def seen(b, t, s):
    """A mask in which every query sees the first source, bool [b, 1, t, s]."""
    mask = numbers("mask", (b, 1, t, s)) > -0.2
    mask[..., 0] = True
    return mask


def attention(case):
    """The result of a configuration and gradients."""
    kind = {"kdim": case["context_dim"], "vdim": case["context_dim"]} if case["context_dim"] else {}
    module = filled(nn.MultiheadAttention(case["dim"], case["heads"], bias=case["bias"], batch_first=True, **kind))
    inputs = {"x": given("x", (case["b"], case["t"], case["dim"]))}
    source = inputs["x"]
    if case["context"] is not None:
        source = inputs["context"] = given("context", (case["b"], case["context"], case["context_dim"] or case["dim"]))
    s = source.shape[1]
    allowed = np.ones((case["b"], 1, case["t"], s), bool)
    if case["causal"]:
        allowed &= np.tri(case["t"], s, dtype=bool)
    if case["mask"]:
        allowed &= seen(case["b"], case["t"], s)
    hidden = torch.from_numpy(~allowed).expand(-1, case["heads"], -1, -1).reshape(-1, case["t"], s)
    out, _ = module(inputs["x"], source, source, attn_mask=hidden, need_weights=False)
    return results([out], inputs, module)


def transformer_cases():
    """Encoder and decoder layers, and stacks of them."""
    for kind in ("TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder", "TransformerDecoder"):
        for norm_first in (True, False):
            yield {
                "kind": kind, "dim": 4, "heads": 2, "hidden": 5, "norm_first": norm_first, "gelu": norm_first,
                "depth": 2, "b": 2, "t": 3, "context": 2, "causal": norm_first or "Decoder" in kind,
            }  # fmt: skip


def transformer(case):
    """The result of a configuration and gradients."""
    layer = case["kind"].removesuffix("Layer") + "Layer"
    module = getattr(nn, layer)(
        case["dim"], case["heads"], case["hidden"], dropout=0.0, activation="gelu" if case["gelu"] else "relu",
        batch_first=True, norm_first=case["norm_first"],
    )  # fmt: skip
    if layer != case["kind"]:
        norm = nn.LayerNorm(case["dim"]) if case["norm_first"] else None
        module = getattr(nn, case["kind"])(module, case["depth"], norm)
    module = filled(module).train()
    inputs = {"x": given("x", (case["b"], case["t"], case["dim"]))}
    hidden = nn.Transformer.generate_square_subsequent_mask(case["t"]) if case["causal"] else None
    if "Decoder" in case["kind"]:
        inputs["context"] = given("context", (case["b"], case["context"], case["dim"]))
        out = module(inputs["x"], inputs["context"], tgt_mask=hidden)
    elif layer == case["kind"]:
        out = module(inputs["x"], src_mask=hidden)
    else:
        out = module(inputs["x"], mask=hidden)
    return results([out], inputs, module)


if __name__ == "__main__":
    groups = {
        "recurrent": (recurrent_cases, recurrent),
        "cell": (cell_cases, cell),
        "attention": (attention_cases, attention),
        "transformer": (transformer_cases, transformer),
    }
    arrays, listed = {}, {}
    for group, (cases, run) in groups.items():
        listed[group] = list(cases())
        for n, case in enumerate(listed[group]):
            arrays |= {f"{group} {n} {name}": value for name, value in run(case).items()}
    size = sum(x.size for x in arrays.values())
    flat = np.concatenate([x.ravel() for x in arrays.values()])
    index = {name: list(x.shape) for name, x in arrays.items()}
    text = json.dumps({"torch": torch.__version__, "cases": listed, "index": index})
    np.savez_compressed(STORED, numbers=flat, text=np.asarray(text))
    print(f"{size} numbers, {STORED.stat().st_size} bytes")
