"""One's own code by name: what may be imported, what it must give, and what a mistake says."""

import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.extending import parse_factory
from evenhand.learners.parsing import parse_learner
from evenhand.sources import base

CODE = '''
from os import system

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh

number = 3


def tree(depth=1):
    return DecisionTreeClassifier(max_depth=depth)


def nothing():
    return None


def broken():
    return 1 / 0


def refused():
    return eh.Optimistic(xi=2)


class Constant:
    """A learner, and its own model: every label is the first."""

    def fit(self, X, y, *, previous=None, seed=0):
        self.classes = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes[0])
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the user's own that this process trusts."""
    folder = tmp_path / "lib" / "shop"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "parts.py").write_text(CODE)
    (folder / "unwell.py").write_text("import no_such_package\n")
    (folder / "slip.py").write_text("def make(:\n")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv("EVENHAND_ALLOW", "shop")
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def test_the_optional_parts_of_a_source_are_declared():
    model, table = eh.SyntheticModel1.instance("I"), eh.datasets.load("german")
    for source in (model, table):
        assert isinstance(source, base.Source)
        assert isinstance(source.open(0, [0]), base.Stream)
    assert isinstance(model, base.HasFairMixture)
    assert isinstance(model.open(0, [0]), base.ExactStream)
    assert isinstance(table, base.HasValidation)
    assert isinstance(table.open(0, [0]), base.TestedStream)
    assert not isinstance(table, base.HasFairMixture | base.HasLearner)
    assert not isinstance(table.open(0, [0]), base.ExactStream)
    assert issubclass(eh.Images, base.HasLearner)


@pytest.mark.parametrize("trusted", ["", "other", "shopping", "shop.part", "other, sho"])
def test_nothing_is_imported_that_is_not_allowed(shop: Path, monkeypatch: pytest.MonkeyPatch, trusted: str):
    monkeypatch.setenv("EVENHAND_ALLOW", trusted)
    wanted = ",".join([*(entry.strip() for entry in trusted.split(",") if entry), "shop"])
    with pytest.raises(InputError, match=f"'shop.parts.tree' is not allowed here: set EVENHAND_ALLOW={wanted} if"):
        parse_factory("factory:shop.parts.tree")
    assert "shop" not in sys.modules


@pytest.mark.parametrize("trusted", ["shop", "shop.parts", "other, shop"])
def test_settings_are_keywords(shop: Path, monkeypatch: pytest.MonkeyPatch, trusted: str):
    monkeypatch.setenv("EVENHAND_ALLOW", trusted)
    assert parse_factory("factory:shop.parts.tree")().max_depth == 1
    assert parse_factory("factory:shop.parts.tree:depth=3")().max_depth == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("factory:", "cannot read the factory '': write package.module.function"),
        ("factory:make", "cannot read the factory 'make'"),
        ("factory:shop.parts.tree()", "cannot read the factory"),
        ("factory:shop.absent.make", "no module 'shop.absent' is installed or in a folder of PYTHONPATH"),
        ("factory:shop.parts.tres", "shop.parts has no 'tres', did you mean 'tree'"),
        ("factory:shop.parts.number", "is no function, but of type int"),
        ("factory:shop.parts.tree:depth", "settings are written key=value"),
        ("factory:shop.parts.tree:height=3", "'shop.parts.tree' failed: TypeError: .*unexpected keyword argument 'height'"),
        ("factory:shop.parts.broken", r"failed: ZeroDivisionError: division by zero \(parts.py, line 21\)"),
        ("factory:shop.parts.refused", "'shop.parts.refused' failed: xi must lie strictly between 0 and 1"),
        ("factory:shop.unwell.make", r"cannot be imported: ModuleNotFoundError: .*no_such_package.* \(unwell.py, line 1\)"),
        ("factory:shop.slip.make", "cannot be imported: SyntaxError"),
        ("factory:shop.parts.system:command=ls", "is defined in 'posix', which is not allowed here"),
        ("factory:shop.parts.nothing", "gave None, which is no learner: it has no fit"),
        ("factory:shop.parts.type", "there is no factory"),
    ],
)  # fmt: skip
def test_what_a_mistake_says(shop: Path, text: str, message: str):
    with pytest.raises(InputError, match=message):
        parse_learner(text)


def test_learners(shop: Path):
    assert parse_learner("factory:shop.parts.tree:depth=2").max_depth == 2
    source = eh.SyntheticModel1.instance("I")
    result = eh.simulate(source, ["uniform"], parse_learner("factory:shop.parts.Constant"), budget=20, trials=1)
    assert result.final["test_accuracy"].between(0.3, 0.7).all()
