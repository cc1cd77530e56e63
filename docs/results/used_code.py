"""Which code a step of the evidence uses: a digest that changes with what the code does, and not with what it says."""

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

__all__ = ["code_of"]

JUDGES = ("src/evenhand/experiments/", "src/evenhand/plotting/", "src/evenhand/cli/reproduce.py")
"""What judges and draws: code of a reproduction, and of nothing else that is measured."""


class WithoutTexts(ast.NodeTransformer):
    """Leaves out texts that stand alone: docstrings, also those below a constant."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Nothing, where it is a constant."""
        return None if isinstance(node.value, ast.Constant) else node


@cache
def digest(path: Path, changed: int) -> bytes:
    """Of what a file does, last changed then: of Python without comments and docstrings."""
    data = path.read_bytes()
    if path.suffix == ".py":
        data = ast.unparse(WithoutTexts().visit(ast.parse(data))).encode()
    return hashlib.blake2b(data, digest_size=16).digest()


def code_of(command: str, root: Path) -> str:
    """A digest of the code that a command uses: the package, the scripts it names with what they import, the long tests.

    Args:
        command: as in `evidence.py`, run from the top folder.
        root: the top folder of the checkout.
    """
    files = {
        path for path in (root / "src/evenhand").rglob("*") if path.is_file() and path.parent.name != "__pycache__"
    }
    if "reproduce" not in command:
        files = {path for path in files if not path.relative_to(root).as_posix().startswith(JUDGES)}
    if "pytest" in command:
        files |= {path for path in (root / "tests").rglob("test_*.py") if "mark.soak" in path.read_text("utf-8")}
    if "evenhand bench" in command:
        files |= set((root / "benchmarks/speed").glob("*.py"))
    for script in re.findall(r"\S+\.py\b", command):
        files |= with_imports(root / script, root)
    named = ((path.relative_to(root).as_posix(), digest(path, path.stat().st_mtime_ns)) for path in sorted(files))
    return hashlib.blake2b(b"".join(name.encode() + own for name, own in named), digest_size=8).hexdigest()


def with_imports(script: Path, root: Path) -> set[Path]:
    """A script, and what it and its imports import of our scripts."""
    found: set[Path] = set()
    left = [script]
    while left:
        path = left.pop()
        # says how numbers were made, and has no part in them
        if path in found or path.stem == "provenance":
            continue
        found.add(path)
        for name in imports(path):
            for base in (root / "benchmarks" / name, root / "docs/results" / name):
                left += [file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()]
    return found


def imports(path: Path) -> set[str]:
    """The modules that a file imports, or names in them, as paths."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.replace(".", "/") for name in found}
