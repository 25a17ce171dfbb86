"""Check docstrings, comments, texts of errors and pages against the language rule of CONTRIBUTING.md.

docs/glossary.md has the words: its table lists names to avoid, its last sections openers, phrases and hinges. Words in
backticks there are refused here. A function's docstring must also start with a verb, and every docstring with a line
that stands alone. Sentences of docstrings and comments have `MAX_WORDS` words at most. Arguments are files or folders
of Python and Markdown; the default is `tracer`.

    python tools/check_language.py tracer/primitives docs/design
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

GLOSSARY = Path(__file__).parent.parent / "docs" / "glossary.md"
NOUN = re.compile(r"(The|A|An|Which|Where|How|One|Both|Each|Every)\b")
POSSESSIVE = re.compile(r"\b\w+ of (?:NumPy|JAX|SciPy|Python|CPython|PyTorch|LLVM)'s(?=[,;:.)]|$)")
ALLOWED = re.compile(r"greatest common divisor", re.IGNORECASE)  # a mathematical name

MAX_WORDS = 20  # of a clause: code, parentheses, names of parameters, tables and examples do not count

_CODE = re.compile(r"``[^`]+``|`[^`]*`|\"[^\"]*\"")
_TELLS = re.compile(r"\b(message|\w+Error|\w+Warning|warn|refuse\w*)$")  # what is called with texts for users
_TERM = re.compile(r"`([^`]+)`")
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_PARAMETER = re.compile(r"(?:^|(?<=[.;:]))\s*\*{0,2}`?[a-zA-Z_]\w*`?(?:, \*{0,2}`?\w+`?)*:(?=\s|$)")
_CLAUSE = re.compile(r"(?<=[.!?;:])\s+|(?:^|\s)- ")
_WORD = re.compile(r"[A-Za-z]{2}|^[aAI]$|\d")


@dataclass(frozen=True, slots=True)
class Words:
    """Refused openers of sentences, and refused words with their replacement where the glossary has one.

    hinges: words that docstrings and comments avoid within sentences, too.
    """

    openers: re.Pattern[str]
    phrases: re.Pattern[str]
    hinges: re.Pattern[str]
    instead: dict[str, str]


def read_words(page: str) -> Words:
    """Return the refused words of a glossary page.

    Raises ValueError if the page lacks its table or its lists.
    """
    table, openers, phrases, hinges = (*re.split(r"^## .*$", page, flags=re.MULTILINE), "", "", "")[:4]
    instead = {}
    for row in table.splitlines():
        cells = row.strip("|").split("|")
        if row.startswith("|") and len(cells) == 4:
            instead.update({name.lower(): cells[0].strip() for name in _TERM.findall(cells[3])})
    first, anywhere, within = (_TERM.findall(section) for section in (openers, phrases, hinges))
    if not (instead and first and anywhere and within):
        raise ValueError("the glossary needs a table with names to avoid, and lists of openers, phrases and hinges")
    return Words(_any_of(first), _any_of([*instead, *anywhere]), _any_of(within), instead)


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that matches each of the words, longest first, in any case."""
    ordered = sorted(words, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\b", re.IGNORECASE)


@cache
def words() -> Words:
    """Return the words of docs/glossary.md."""
    return read_words(GLOSSARY.read_text(encoding="utf-8"))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring, comment or page, without doctest lines."""
    prose = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith((">>>", "...")))
    for paragraph in re.split(r"\n\s*\n", prose):
        yield from re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split()))


def faults(sentence: str, parameters: Sequence[str] = ()) -> Iterator[str]:
    """Yield a message for each rule that the sentence breaks.

    parameters: names that may open a sentence if `:` or `,` follows, as in `what: the operation, for errors`.
    """
    refused = words()
    opener = refused.openers.match(sentence)
    if opener and not (opener[0] in parameters and sentence[opener.end() :].startswith((":", ","))):
        yield f"name the subject, not {opener[0]!r}: {sentence}"
        return
    prose = ALLOWED.sub("", _CODE.sub("`…`", sentence))
    if found := refused.phrases.search(prose):
        term = refused.instead.get(found[0].lower())
        yield f"{found[0]!r}{f' is {term!r}' if term else ''}: {sentence}"
    elif found := POSSESSIVE.search(prose):
        yield f"possessive, {found[0]!r}: {sentence}"


def clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a docstring or comment: no code, parentheses, names of parameters or indented blocks."""
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"^(?: |>>>|\.\.\.)", paragraph, re.MULTILINE):
            continue
        prose, count = _CODE.sub("X", " ".join(paragraph.split())), 1
        while count:
            prose, count = _ASIDE.subn("", prose)
        yield from _CLAUSE.split(_PARAMETER.sub(". ", prose))


def faults_of_clauses(text: str) -> Iterator[str]:
    """Yield a message for each clause of a docstring or comment that is long, or hinges on a word without a subject."""
    for clause in clauses(text):
        if (count := sum(_WORD.search(word) is not None for word in clause.split())) > MAX_WORDS:
            yield f"{count} words, at most {MAX_WORDS}: {clause}"
        if (found := words().hinges.search(clause)) and clause[: found.start()].rstrip()[-2:].lower() != "so":
            yield f"name the thing, not {found[0]!r}: {clause}"


def of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and message of every fault in the docstrings, comments and errors' texts of a module."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _TELLS.search(ast.unparse(node.func)):
            yield from ((node.lineno, fault) for text in texts(node) for fault in faults(text))
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not (text := ast.get_docstring(node)):
            continue
        line = 1 if isinstance(node, ast.Module) else node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node) and NOUN.match(text):
            yield line, "start with a verb: " + text.splitlines()[0]
        if text.partition("\n\n")[0].count("\n"):
            yield line, "the first line stands alone: " + text.splitlines()[0]
        names = parameters(node)
        yield from ((line, fault) for sentence in sentences(text) for fault in faults(sentence, names))
        yield from ((line, fault) for fault in faults_of_clauses(text))
    for line, text in comments(path):
        yield from ((line, fault) for sentence in sentences(text) for fault in faults(sentence))
        yield from ((line, fault) for fault in faults_of_clauses(text))


def texts(call: ast.Call) -> Iterator[str]:
    """Yield the texts of a call's arguments, values within them as `…`."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        match argument:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(part.value if isinstance(part, ast.Constant) else "`…`" for part in parts)


def parameters(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names that a docstring may describe: parameters of the function, or of `__init__`, and fields."""
    if isinstance(node, ast.ClassDef):
        fields = [x.target.id for x in node.body if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)]
        made = [x for x in node.body if isinstance(x, ast.FunctionDef) and x.name == "__init__"]
        return fields + [name for x in made for name in parameters(x)]
    if isinstance(node, ast.Module):
        return []
    return [x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith(("property", "setter")) for decorator in node.decorator_list)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each comment with its line; full-line comments below each other are one."""
    with path.open("rb") as stream:
        found = [token for token in tokenize.tokenize(stream.readline) if token.type == tokenize.COMMENT]
    blocks = groupby(
        enumerate(found), lambda pair: (pair[1].start[1], pair[1].start[0] - pair[0], pair[1].line.lstrip()[:1] == "#")
    )
    for (_, _, is_block), members in blocks:
        block = [token for _, token in members]
        for group in [block] if is_block else [[token] for token in block]:
            yield group[0].start[0], "\n".join(token.string.lstrip("#: ") for token in group)


def of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and message of every fault in the prose of a Markdown page, outside code and tables."""
    blocks: list[tuple[int, list[str]]] = []
    is_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code or not line.strip() or line.startswith(("#", "|", "<!--")):
            blocks.append((number, []))
        elif not blocks or line.lstrip().startswith(("- ", "* ")):
            blocks.append((number, [line.lstrip(" -*")]))
        else:
            blocks[-1][1].append(line)
    for number, lines in blocks:
        text = re.sub(r"^\*\*.*?\*\* \([\d-]+\)\. ", "", "\n".join(lines))  # the title and date of a decision
        yield from ((number, fault) for sentence in sentences(text) for fault in faults(sentence))


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and message of every fault in a file."""
    return of_page(path) if path.suffix == ".md" else of_python(path)


def main(arguments: Sequence[str]) -> int:
    """Print every finding; return 1 if there is one."""
    roots = [Path(argument) for argument in arguments] or [Path("tracer")]
    files = sorted(
        file
        for root in roots
        for file in ([root] if root.is_file() else root.rglob("*"))
        if file.suffix in (".py", ".md")
    )
    count = 0
    for path in files:
        for line, text in findings(path):
            count += 1
            print(f"{path}:{line}: {text[:180]}")
    print(f"{count} findings in {len(files)} files")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
