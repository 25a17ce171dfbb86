"""Check the docstrings and comments under `tracer/` against the language rule of CONTRIBUTING.md.

Refuses sentences that open with a pronoun in place of a name, and function docstrings that open with a noun phrase
marker ("The …", "A …") instead of a verb. Arguments are files or folders; the default is `tracer`.

    python tools/check_language.py tracer/primitives
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

# Openers that name nothing: the sentence needs its subject.
OPENERS = re.compile(
    r"(What|Whatever|Whoever|Those|That of|The same|As said|As there|Others|The others|The rest|Of those|Of these)\b"
)
NOUN = re.compile(r"(The|A|An|Which|Where|How|One|Both|Each|Every)\b")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring or comment, without doctest lines."""
    prose = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith((">>>", "...")))
    for paragraph in re.split(r"\n\s*\n", prose):
        yield from re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split()))


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every sentence that breaks the rule."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        line = 1 if isinstance(node, ast.Module) else node.lineno
        is_property = not isinstance(node, ast.Module) and any(
            ast.unparse(d).endswith(("property", "setter")) for d in node.decorator_list
        )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property and NOUN.match(text):
            yield line, "start with a verb: " + text.splitlines()[0]
        yield from ((line, s) for s in sentences(text) if OPENERS.match(s))
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT and OPENERS.match(text := token.string.lstrip("# ")):
                yield token.start[0], text


def main(arguments: list[str]) -> int:
    """Print every finding; return 1 if there is one."""
    roots = [Path(a) for a in arguments] or [Path("tracer")]
    files = sorted(f for root in roots for f in ([root] if root.is_file() else root.rglob("*.py")))
    count = 0
    for path in files:
        for line, text in findings(path):
            count += 1
            print(f"{path}:{line}: {text[:150]}")
    print(f"{count} findings in {len(files)} files")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
