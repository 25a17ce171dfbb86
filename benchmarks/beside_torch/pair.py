"""`Pair`: one training step in both libraries, and what is needed to make it."""

from __future__ import annotations

import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracer import io as files


@dataclass(frozen=True)
class Pair:
    """The training step of an example in tracer and in PyTorch, from equal weights.

    ours, theirs: take the arrays of a batch, change the state that they keep, and return the loss before the step as a
    float. batches: a list of tuples of NumPy arrays, taken in turn. lines: the objects whose lines are counted, ours
    and theirs: the model, the loss and the step. Where training is one program, batches is None: ours and theirs start
    anew at each call, take 20 steps, and return their losses.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    batches: Sequence[tuple[Any, ...]] | None
    lines: tuple[Sequence[Any], Sequence[Any]]


def loaded(model: Any, torch_model: Any, rename: dict[str, str] | None = None) -> Any:
    """Our model with the weights of PyTorch's, by name. rename: parts of PyTorch's names, and ours in their place."""
    weights = {name: x for name, x in torch_model.state_dict().items() if not name.endswith("num_batches_tracked")}
    return files.load_weights(model, weights, rename=rename)


def code_lines(objects: Sequence[Any]) -> int:
    """The lines of the source of classes and functions that hold code: no blank lines, comments or docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    counted = 0
    for found in objects:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(found)))
        rows: set[int] = set()
        begins = True  # a string here is a docstring
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in skipped:
                if not (begins and token.type == tokenize.STRING):
                    rows.update(range(token.start[0], token.end[0] + 1))
                begins = False
            elif token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                begins = True
        counted += len(rows)
    return counted
