"""Which code a step of the evidence uses: a digest that changes with what the code does, and not with what it says.

The code of a step is what its scripts and commands import, from the package and from the scripts beside them, without running
anything. It errs on the side of too much: every import of a file counts, and every text that names a module.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = ["code_of", "files_of"]

PACKAGE = "evenhand"
SHELL = ("cli", "__init__.py")
LONG = re.compile(r"^@pytest\.mark\.soak$", re.MULTILINE)
PROVENANCE, LAZY = "provenance.py", "lazy.py"
"""A script that says how numbers were made and has no part in them; a module that names all commands and imports one."""


class WithoutTexts(ast.NodeTransformer):
    """Leaves out texts that stand alone: docstrings, also those below a constant."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Nothing, where it is a constant."""
        return None if isinstance(node.value, ast.Constant) else node


@cache
def parsed(path: Path, changed: int) -> ast.AST:
    """What a file of Python does, last changed then: without comments and docstrings."""
    tree: ast.AST = WithoutTexts().visit(ast.parse(path.read_bytes()))
    return tree


@dataclass(frozen=True)
class Named:
    """What a file of Python imports and names."""

    modules: frozenset[str]
    """In full."""
    public: frozenset[str]
    """Names that it takes from the package itself."""
    texts: frozenset[str]


@cache
def named_by(path: Path, changed: int, above: Path) -> Named:
    """What a file imports and names, last changed then; `above` is the folder that the package is in."""
    modules, public, texts, called = set(), set(), set(), {PACKAGE}
    for node in ast.walk(parsed(path, changed)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
            called |= {alias.asname for alias in node.names if alias.name == PACKAGE and alias.asname}
        elif isinstance(node, ast.ImportFrom):
            module, names = absolute(node, path, above), {alias.name for alias in node.names}
            modules |= {module, *(f"{module}.{name}" for name in names)}
            public |= names if module == PACKAGE else set()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            public.add(f"{node.value.id}.{node.attr}")
    public = {name.rpartition(".")[2] for name in public if name.partition(".")[0] in called or "." not in name}
    return Named(frozenset(modules), frozenset(public), frozenset(texts))


def absolute(node: ast.ImportFrom, path: Path, above: Path) -> str:
    """The module of `from … import`, in full."""
    if not node.level:
        return node.module or ""
    folder = path.parents[node.level - 1].relative_to(above)
    return ".".join([*folder.parts, *([node.module] if node.module else [])])


@cache
def public_names(stub: Path, changed: int) -> dict[str, str]:
    """Where the public names of the package are, which are imported when they are first used."""
    lines = [node for node in ast.walk(ast.parse(stub.read_bytes())) if isinstance(node, ast.ImportFrom)]
    above = stub.parents[1]
    return {alias.name: f"{absolute(node, stub, above)}.{alias.name}" for node in lines for alias in node.names}


@cache
def digest(path: Path, changed: int) -> bytes:
    """Of what a file does, last changed then."""
    data = ast.unparse(parsed(path, changed)).encode() if path.suffix == ".py" else path.read_bytes()
    return hashlib.blake2b(data, digest_size=16).digest()


def code_of(command: str, root: Path) -> str:
    """A digest of the code that a command uses.

    Args:
        command: as in `evidence.py`, run from the top folder.
        root: the top folder of the checkout.
    """
    files = sorted(files_of(command, root))
    named = ((path.relative_to(root).as_posix(), digest(path, path.stat().st_mtime_ns)) for path in files)
    return hashlib.blake2b(b"".join(name.encode() + own for name, own in named), digest_size=8).hexdigest()


def files_of(command: str, root: Path) -> set[Path]:
    """The files that a command uses."""
    checkout = Checkout(root)
    first = [root / script for script in re.findall(r"\S+\.py\b", command)]
    for verb in re.findall(rf"(?:^|&& ){PACKAGE} (\w+)", command):
        first += checkout.shell(verb)
    if f"{PACKAGE} bench" in command:
        first += (root / "benchmarks/speed").glob("*.py")
    if "pytest" in command:
        # the long tests start servers, shells and scripts: everything counts, but for the paper's figures
        first += [path for path in (root / "tests").rglob("*.py") if not path.name.startswith("test_")]
        first += [path for path in (root / "tests").rglob("test_*.py") if LONG.search(path.read_text("utf-8"))]
        first += [path for path in checkout.package.rglob("*.py") if path.parent.name not in ("experiments", "cli")]
        first += [file for verb in checkout.verbs() - {"reproduce"} for file in checkout.shell(verb)]
    return checkout.closure(first)


@dataclass(frozen=True)
class Checkout:
    """A folder with the package and the scripts."""

    root: Path
    known: dict[str, set[Path]] = field(default_factory=dict)
    """The files of a module, once they were looked for."""

    @property
    def package(self) -> Path:
        """The package's folder."""
        return self.root / "src" / PACKAGE

    @property
    def tops(self) -> tuple[Path, ...]:
        """Where modules are looked for: the package's folder, those of the scripts, and that of the tests."""
        return self.package.parent, self.root / "benchmarks", self.root / "docs/results", self.root

    def closure(self, first: list[Path]) -> set[Path]:
        """These files, all that they import, and the data beside the modules among them."""
        found: set[Path] = set()
        left = list(first)
        while left:
            path = left.pop()
            if path in found or path.name == PROVENANCE or not path.is_file():
                continue
            found.add(path)
            left += self.used_by(path)
        return found | {path for path in self.data() if owner(path) / "__init__.py" in found}

    def data(self) -> Iterator[Path]:
        """Templates, styles and bundled data sets: files of the package's folders that are no Python."""
        for path in self.package.rglob("*"):
            made = "__pycache__" in path.parts or path.suffix in (".py", ".pyi")
            if path.is_file() and not made and path.parent != self.package:
                yield path

    def used_by(self, path: Path) -> set[Path]:
        """The files that a file imports or names."""
        if path.suffix != ".py":
            return set()
        named = named_by(path, path.stat().st_mtime_ns, self.package.parent)
        modules = set(named.modules)
        stub = self.package / "__init__.pyi"
        if stub.exists() and named.public:
            known = public_names(stub, stub.stat().st_mtime_ns)
            modules |= {known[name] for name in named.public & known.keys()}
        if path.name != LAZY:
            texts = {text for text in named.texts if re.fullmatch(rf"{PACKAGE}\.[\w.:]+", text)}
            modules |= {text.replace(":", ".").rstrip(".") for text in texts}
        found = {file for name in modules for file in self.files(name)}
        starts = "-m" in named.texts and PACKAGE in named.texts
        if starts or (f"{PACKAGE}.cli" in modules and self.package not in path.parents):
            verbs = self.verbs()
            found |= {file for verb in (named.texts & verbs or verbs) for file in self.shell(verb)}
        return found

    def files(self, name: str) -> set[Path]:
        """The files that an import of this module runs; of a package whose parts are imported when used, all parts."""
        if name in self.known:
            return self.known[name]
        parts, found = name.split("."), set()
        top = [
            base / parts[0] for base in self.tops if (base / parts[0]).is_dir() or (base / f"{parts[0]}.py").is_file()
        ]
        for start in top:
            for end in range(1, len(parts) + 1):
                path = start.joinpath(*parts[1:end])
                found |= {file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()}
            if self.package in path.parents and path.is_dir() and loads_parts(path):
                found |= set(path.rglob("*.py"))
        self.known[name] = found
        return found

    def verbs(self) -> set[str]:
        """The commands of the shell."""
        path = self.package.joinpath(*SHELL)
        if not path.exists():
            return set()
        return set(re.findall(r'^    "(\w+)": "\w+:\w+",$', path.read_text("utf-8"), flags=re.MULTILINE))

    def shell(self, verb: str) -> list[Path]:
        """The modules of a command of the shell, with those of its subcommands."""
        folder = self.package / "cli"
        return [
            self.package / "__main__.py",
            self.package.joinpath(*SHELL),
            *folder.glob(f"{verb}.py"),
            *folder.glob(f"{verb}_*.py"),
        ]


def loads_parts(folder: Path) -> bool:
    """Whether a folder's modules are imported by names put together, as alembic's migrations are, or when they are used."""
    start = folder / "__init__.py"
    return not start.exists() or "lazy_loader" in start.read_text("utf-8") or folder.name == "experiments"


def owner(path: Path) -> Path:
    """The package that a file of data belongs to."""
    return next(folder for folder in path.parents if (folder / "__init__.py").exists())
