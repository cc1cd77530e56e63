"""One's own code by name: what may be imported, what it must give, and what a mistake says."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.errors import InputError
from evenhand.extending import parse_factory
from evenhand.learners.parsing import parse_learner
from evenhand.sources import base
from evenhand.sources.catalogue import open_source
from evenhand.sources.sampled import Sampled
from evenhand.strategies import parse_strategy, strategy_text

CODE = '''
from os import system

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh

number = 3


def smallest(step=1):
    """A strategy without a class: the group with the fewest examples, every so many in turn."""

    def rule(standing, uniforms):
        index = int(standing.examples.argmin()) // step
        return eh.Decision.of(standing, standing.groups[index], kind="fewest")

    return rule


def silent():
    return lambda standing, uniforms: None


def favour(standing):
    return np.where(np.array(standing.groups) == "v", 10.0, 0.0)


def ignore(standing):
    return 0 * standing.mean_loss


def model(distance=2.0):
    means = {"u": {0: (0.0, 0.0), 1: (distance, 0.0)}, "v": {0: (0.0, 0.0), 1: (0.0, distance)}}
    return eh.SyntheticModel1(means, name="far apart")


def tree(depth=1):
    return DecisionTreeClassifier(max_depth=depth)


def word():
    return "uv"


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
        ("factory:shop.parts.number", "is not a function, but of type int"),
        ("factory:shop.parts.tree:depth", "settings are written key=value"),
        ("factory:shop.parts.tree:height=3", "'shop.parts.tree' failed: TypeError: .*unexpected keyword argument 'height'"),
        ("factory:shop.parts.favour", "missing 1 required .*; a factory is called with the settings after its second colon"),
        ("factory:shop.parts.broken", r"failed: ZeroDivisionError: division by zero \(parts.py, line \d+\)"),
        ("factory:shop.parts.refused", "'shop.parts.refused' failed: xi must lie strictly between 0 and 1"),
        ("factory:shop.unwell.make", r"cannot be imported: ModuleNotFoundError: .*no_such_package.* \(unwell.py, line 1\)"),
        ("factory:shop.slip.make", "cannot be imported: SyntaxError"),
        ("factory:shop.parts.system:command=ls", "is defined in 'posix', which is not allowed here"),
        ("factory:shop.parts.nothing", "gave None, which is not a learner: it has no fit"),
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


RUN = {"budget": 24, "trials": 2}


def cli(*words: object) -> str:
    """What a command prints; bad input is raised, whether the command said so itself or left it to `main`."""
    from evenhand.cli import app

    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code == 2:
        raise InputError(result.output)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_strategies(shop: Path):
    text = "factory:shop.parts.smallest:step=1"
    assert parse_strategy(text)[0] == strategy_text(text) == text
    assert parse_strategy(f"mine={text}")[0] == "mine"
    assert strategy_text(f"mine={text}") == text
    source = eh.SyntheticModel1.instance("I")
    result = eh.simulate(source, [text, f"mine={text}", "uniform"], **RUN)
    assert result.labels == (text, "mine", "uniform")
    assert result.settings["strategies"] == {text: text, "mine": text, "uniform": "uniform"}
    share = result.final.groupby("strategy", observed=True)["mixture"].unique()
    assert share[text].tolist() == share["mine"].tolist() == [0.5]
    with pytest.raises(InputError, match="gave None, which is not a strategy: a strategy is called with the standing"):
        parse_strategy("factory:shop.parts.nothing")
    with pytest.raises(InputError, match="the strategy gave None: a strategy returns a Decision"):
        eh.simulate(source, ["factory:shop.parts.silent"], **RUN)


def test_simulate_from_the_shell_and_resume(shop: Path, tmp_path: Path):
    rule, learner = "mine=factory:shop.parts.smallest", "factory:shop.parts.Constant"
    run = ["simulate", "factory:shop.parts.model:distance=1", "--strategy", rule, "--learner", learner, "--budget", 24]
    first = json.loads(cli(*run, "--trials", 1, "--out", tmp_path / "out", "--trace", "none", "--json"))
    assert (first["source"], list(first["strategies"])) == ("far apart", ["mine"])
    again = json.loads(cli(*run, "--trials", 2, "--out", tmp_path / "out", "--trace", "none", "--resume", "--json"))
    assert again["trials"] == 2
    run[3] += ":step=1"
    with pytest.raises(InputError, match=r"strategy was .*smallest.*, is .*step=1"):
        cli(*run, "--trials", 2, "--out", tmp_path / "out", "--trace", "none", "--resume")


def test_curate_from_the_shell(shop: Path, tmp_path: Path):
    text, learner = "factory:shop.parts.smallest", "factory:shop.parts.tree:depth=2"
    curated = ["curate", "german", "--budget", 24, "--strategy", text, "--learner", learner, "--compare", 1]
    cli(*curated, "--out", tmp_path / "rows.csv", "--json")
    report = json.loads((tmp_path / "rows.report.json").read_text())
    assert report["settings"]["strategy"] == text
    assert report["comparison"]["rules"] == [text, "uniform", "uncurated"]


def test_campaigns_keep_the_text(shop: Path, monkeypatch: pytest.MonkeyPatch):
    url, text = "sqlite:///c.db", "factory:shop.parts.smallest:step=1"
    made = ["campaign", "create", "--group", "u", "--group", "v", "--budget", 20, "--learner", "none", "--db", url]
    cli(*made, "s", "--strategy", f"mine={text}")
    with eh.Campaign.open(url, "s") as c:
        assert c.status()["strategy"] == text
        for group in ("u", "v", "u"):
            request = c.ask()
            assert request.group == group
            c.tell(request, n=2)
        assert c.verify().problems == []
        with pytest.raises(InputError, match="leave it out of open"):
            eh.Campaign.open(url, "s", strategy=eh.Uniform())
    monkeypatch.delenv("EVENHAND_ALLOW")
    with eh.Campaign.open(url, "s") as c:
        assert (c.status()["strategy"], c.labels_used) == (text, 6)
        with pytest.raises(InputError, match="set EVENHAND_ALLOW=shop"):
            c.ask()
    with pytest.raises(InputError, match="set EVENHAND_ALLOW=shop"):
        cli(*made, "t", "--strategy", text)


def test_terms(shop: Path, monkeypatch: pytest.MonkeyPatch):
    text = "optimistic:c0=0.2,terms=shop.parts.favour+shop.parts.ignore"
    rule = parse_strategy(text)[1]
    assert str(rule) == strategy_text(f"mine={text}") == text
    assert parse_strategy(str(rule))[1] == rule
    source = eh.SyntheticModel1.instance("I")
    final = eh.simulate(source, [text], **RUN).final.set_index(["trial", "group"])["mixture"]
    assert final[0, "v"] > final[0, "u"]
    with eh.Campaign.create("sqlite:///c.db", "s", ["u", "v"], text, None, budget=20) as c:
        assert c.status()["strategy"] == text
    with eh.Campaign.open("sqlite:///c.db", "s") as c:
        assert c._log.parts.strategy == rule
        c.tell(c.ask(), n=2)
        assert c.verify().problems == []
    # an object is one's own on every machine, so that a script which gives it again works wherever it runs
    with eh.Campaign.create("sqlite:///c.db", "o", ["u", "v"], rule, None, budget=20) as c:
        assert c.status()["strategy"] == "own:Optimistic"
    monkeypatch.delenv("EVENHAND_ALLOW")
    with pytest.raises(
        InputError, match=r"the term 'shop\.parts\.favour' is not allowed here: set EVENHAND_ALLOW=shop"
    ):
        parse_strategy(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("optimistic:terms=shop.parts.number", "the term 'shop.parts.number' is not a function"),
        ("optimistic:terms=favour", "cannot read the term 'favour'"),
        ("optimistic:terms=shop.parts.favour+", "cannot read the term ''"),
        ("optimistic:terms=shop.parts.favour+shop.parts.favour", "two terms are named 'favour'"),
        ("greedy:terms=shop.parts.favour", "strategy 'greedy' has no setting 'terms'"),
        ("optimistic:bound=vc", "the bound 'vc' cannot be made: give d=… too"),
        ("optimistic:bound=vc,d=many", "the bound 'vc' cannot be made"),
    ],
)
def test_strategies_that_cannot_be_made(shop: Path, text: str, message: str):
    with pytest.raises(InputError, match=message):
        parse_strategy(text)


def test_a_term_cannot_hide_another():
    def loss(standing):
        return standing.mean_loss

    with pytest.raises(InputError, match="two terms are named 'loss'"):
        eh.Optimistic(terms=[loss])


def test_sources(shop: Path):
    assert open_source("factory:shop.parts.model").name == "far apart"
    with pytest.raises(InputError, match="gave 'uv', which is not a source: it has no name, groups, classes"):
        open_source("factory:shop.parts.word")
    with pytest.raises(InputError, match="'label' has no effect on the source"):
        open_source("factory:shop.parts.model", label="y")


def test_a_source_out_of_one_function():
    def draw(random, group, size):
        first, second = random.random(size), random.normal(size=size)  # not row by row
        return np.stack([first, second], axis=1), np.where(first > (0.5 if group == "u" else 0.2), "yes", "no")

    source = Sampled("s", ["u", "v"], draw, classes=["yes", "no"])
    whole, parts = (source.open(3, [4]) for _ in range(2))
    at_once = whole.draw(np.array([1]), np.array([700])).X
    sizes = [1, 254, 2, 300, 143]
    np.testing.assert_array_equal(np.concatenate([parts.draw(np.array([1]), np.array([n])).X for n in sizes]), at_once)
    result = eh.simulate(source, ["optimistic", "uniform"], budget=400, trials=3, seed=1)
    assert result.final["test_accuracy"].between(0.75, 1).all()
    with pytest.raises(InputError, match="labels that are not among the classes"):
        Sampled("s", ["u"], draw).open(0, [0])
    with pytest.raises(InputError, match=r"shapes \(5,\) and \(5,\)"):
        Sampled("s", ["u"], lambda random, group, size: (np.zeros(5), np.zeros(5)), tests=5).open(0, [0])


PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every file of the page is written, and every command on it is run, in the order in which they come."""
    monkeypatch.chdir(tmp_path)
    commands = []
    for language, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            if file := re.match(r"# (mine/\w+\.py)\n", block):
                assert block.count("\n") < 30, f"{file[1]} is longer than an example should be"
                Path(file[1]).parent.mkdir(exist_ok=True)
                Path(file[1]).write_text(block)
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            if program == "export":
                given = dict(word.split("=") for word in words)
                assert given.pop("PYTHONPATH") == "."
                monkeypatch.syspath_prepend(tmp_path)
                monkeypatch.setenv("EVENHAND_ALLOW", given.pop("EVENHAND_ALLOW"))
                assert not given
            else:
                assert program == "evenhand"
                cli(*words)
                commands.append(words[0])
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]
    assert {"simulate", "curate", "campaign"} == set(commands)
    assert {file.stem for file in Path("mine").glob("*.py")} == {"patient", "cheap", "noisy", "nearest", "harm", "desk"}
