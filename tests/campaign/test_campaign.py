"""The campaign as a user meets it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import evenhand as eh

SOURCE = eh.SyntheticModel1.instance("I")


class Tap:
    """Examples of the synthetic source, group by group."""

    def __init__(self, seed=0, trial=0, source=SOURCE):
        self.source = source
        self.stream = source.open(seed, [trial])

    def __call__(self, group, size):
        index = self.source.groups.index(group)
        d = self.stream.draw(np.array([index]), np.array([size]))
        return d.X, self.source.classes[d.y]


def here(strategy=None, learner=None, *, budget=100, **settings):
    return eh.Campaign(("u", "v"), strategy or eh.Optimistic(), learner or eh.Logistic(), budget=budget, **settings)


@pytest.fixture(params=["memory", "server"])
def place(request):
    return request.param


@pytest.fixture
def campaign(place, request):
    """Makes campaigns in this process and on a server."""
    if place == "memory":
        return here
    create = request.getfixturevalue("create_remote")
    return lambda **settings: create(("u", "v"), **{"budget": 100, "lease": None, "seed": 0, **settings})


def saved(c, folder, **own):
    """The campaign as another process would open it from a file."""
    c.save(folder / "c.db")
    return eh.Campaign.open(f"sqlite:///{folder / 'c.db'}", c.name, **own)


def drive(c, tap, rounds=10_000):
    choices = []
    while not c.done and len(choices) < rounds:
        r = c.ask()
        choices.append(r.group)
        c.tell(r, *tap(r.group, r.size))
    return choices


def test_a_whole_campaign_spends_its_budget_and_gives_a_model(campaign):
    c = campaign(budget=101)
    drive(c, Tap())
    assert c.done
    assert c.labels_used == 100
    assert sum(c.counts.values()) == 50
    assert sum(c.mixture.values()) == pytest.approx(1)
    with pytest.raises(eh.NothingToAsk) as stop:
        c.ask()
    assert stop.value.reason == "budget spent"
    X, y, groups, ids = c.training_set()
    assert X.shape == (50, 2)
    assert set(groups) == {"u", "v"}
    assert len(set(ids)) == 50
    held = c.validation_set()
    assert held.X.shape == (50, 2)
    assert not {tuple(x) for x in X} & {tuple(x) for x in held.X}
    every = np.vstack([X, held.X])
    reference = eh.Logistic().fit(every, np.concatenate([y, held.y]))
    assert np.allclose(c.final_model().coef_, reference.coef_, atol=1e-6)
    assert np.allclose(c.model().coef_, eh.Logistic().fit(X, y).coef_, atol=1e-6)


def test_warm_up_takes_every_group_once():
    c = eh.Campaign([f"g{i}" for i in range(7)], eh.Greedy(), eh.Logistic(), budget=100, seed=3)
    rng = np.random.default_rng(0)
    first = []
    for _ in range(7):
        r = c.ask()
        assert r.decision.kind == "warm-up"
        first.append(r.group)
        c.tell(r, rng.normal(size=(2, 3)), [0, 1])
    assert sorted(first) == sorted(c.groups)


def test_nine_asks_in_a_row_spread_over_groups():
    c = eh.Campaign(["a", "b", "c"], eh.Optimistic(), eh.Logistic(), budget=1000, seed=1)
    asked = c.ask_many(9)
    assert sorted(r.group for r in asked) == sorted(["a", "b", "c"] * 3)
    assert [r.id for r in asked] == list(range(1, 10))
    rng = np.random.default_rng(1)
    for r in asked:
        c.tell(r, rng.normal(size=(2, 2)), rng.integers(0, 2, 2))
    later = [c.ask().group for _ in range(9)]
    assert len(set(later)) == 3


def test_pending_labels_count_against_the_budget_in_ask_only(campaign):
    c = campaign(budget=16)
    asked = c.ask_many(10)
    assert len(asked) == 8
    assert c.labels_used == 0
    with pytest.raises(eh.NothingToAsk, match="waiting for open requests"):
        c.ask()
    assert not c.done
    c.abandon(asked[0])
    assert c.ask().size == 2
    with pytest.raises(ValueError, match="was abandoned"):
        c.tell(asked[0], np.zeros((2, 2)), [0, 1])


def test_the_last_request_is_cut(campaign):
    c = campaign(budget=22, batch=5)
    sizes = []
    tap = Tap()
    while not c.done:
        r = c.ask()
        sizes.append(r.size)
        c.tell(r, *tap(r.group, r.size))
    assert sizes == [10, 10, 2]


def test_deliveries_in_parts_and_more_than_asked_for(campaign):
    c = campaign(budget=40, batch=5)
    tap = Tap()
    r = c.ask()
    receipt = c.tell(r, *tap(r.group, 3))
    assert (receipt.rows, receipt.outstanding, c.labels_used) == (3, 7, 3)
    assert [each.outstanding for each in c.open_requests] == [7]
    too_many = tap(r.group, 14)
    with pytest.raises(ValueError, match=r"14 rows for request 1, which waits for 7: tell 7, or .* extra=True"):
        c.tell(r, *too_many)
    assert c.labels_used == 3
    receipt = c.tell(r, *too_many, extra=True)
    assert (receipt.rows, receipt.surplus, receipt.outstanding, c.labels_used) == (14, 7, 0, 17)
    assert receipt.training + receipt.validation == 14
    assert c.open_requests == []
    r = c.ask()
    c.tell(r, *tap(r.group, 4))
    c.abandon(r)
    assert (c.labels_used, c.unspent) == (21, 19)


def test_roles_keep_the_share_and_do_not_follow_row_order(campaign):
    c = campaign(budget=4000, batch=500, validation=0.3)
    r = c.ask()
    X = np.arange(2000.0).reshape(1000, 2)
    c.tell(r, X, [0, 1] * 500)
    held = c.validation_set().X[:, 0]
    assert len(held) == 300
    assert 0.4 < np.mean(held < 1000) < 0.6
    other = campaign(budget=4000, batch=500, validation=0.3, seed=9)
    r = other.ask()
    other.tell(r, X, [0, 1] * 500)
    assert set(other.validation_set().X[:, 0]) != set(held)


def test_the_same_delivery_twice_changes_nothing(campaign):
    c = campaign()
    r = c.ask()
    X, y = Tap()(r.group, 2)
    c.tell(r, X, y)
    before = (c.labels_used, c.counts)
    c.tell(r, X.copy(), list(y))
    assert (c.labels_used, c.counts) == before
    with pytest.raises(ValueError, match="request 1 has all its labels"):
        c.tell(r, X + 1, y)
    assert (c.labels_used, c.counts) == before


def test_data_one_already_has(campaign):
    c = campaign(budget=20)
    X, y = Tap()("u", 40)
    c.add(X, y, ["u"] * 40)
    assert c.labels_used == 0
    assert c.counts == {"u": 20, "v": 0}
    assert c.ask().group == "v"
    c.add(*Tap(1)("v", 4), ["v"] * 4, charge=True)
    assert c.labels_used == 4


def test_own_trainer_reports_losses():
    c = eh.Campaign(["u", "v"], eh.Optimistic(), budget=1000, batch=48)
    for _ in range(2):
        r = c.ask()
        assert r.size == 96
        c.tell(r, n=96)
    assert c.counts == {"u": 48, "v": 48}
    c.tell_losses({"u": (0.21, 0.79, 48), "v": (0.35, 0.65, 48)})
    r = c.ask()
    assert (r.group, r.decision.kind) == ("v", "score")
    assert r.decision.terms["loss"].tolist() == pytest.approx([0.21, 0.35])
    with pytest.raises(ValueError, match="accuracy in"):
        c.tell_losses({"u": (0.2, 1.4, 10)})
    with pytest.raises(ValueError, match="unknown group 'w'"):
        c.tell_losses({"w": (0.2, 0.4, 10)})


def test_tell_never_fits():
    class Counting:
        fits = 0

        def fit(self, X, y, *, previous=None, seed=0):
            type(self).fits += 1
            return eh.Logistic().fit(X, y)

    c = here(learner=Counting())
    tap = Tap()
    asked = c.ask_many(4)
    for r in asked:
        c.tell(r, *tap(r.group, 2))
    assert Counting.fits == 0
    c.ask()
    c.ask()
    assert Counting.fits == 1


def frames(X):
    columns = {"one": X[:, 0], "two": X[:, 1]}
    return {
        "numpy": X,
        "sparse": sp.csr_array(X),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "pyarrow": pa.table(columns),
    }


@pytest.mark.parametrize("kind", ["numpy", "sparse", "pandas", "polars", "pyarrow"])
def test_every_kind_of_rows_gives_the_same_campaign(kind, tmp_path):
    plain, other = here(budget=40), here(budget=40)
    tap, tap2 = Tap(), Tap()
    for i in range(20):
        a, b = plain.ask(), other.ask()
        assert a.group == b.group
        plain.tell(a, *tap(a.group, 2))
        X, y = tap2(b.group, 2)
        other.tell(b, frames(X)[kind], y)
        if i == 10:
            other = saved(other, tmp_path)
    kept = other.training_set().X
    given = kind if kind in ("numpy", "sparse") else "pandas"
    assert type(kept) is type(frames(np.zeros((1, 2)))[given])
    assert np.allclose(plain.model().coef_, other.model().coef_)


def test_pipelines_and_classifiers_without_probabilities():
    for estimator in (make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss")), LinearSVC()):
        c = here(learner=eh.SklearnLearner(estimator), budget=30)
        drive(c, Tap())
        assert set(c.model().predict(np.zeros((3, 2)))) <= {0, 1}
        assert not hasattr(estimator, "classes_")
    with pytest.raises(ValueError, match="LinearSVC does not give"):
        here(learner=eh.SklearnLearner(LinearSVC()), risk="log")


def test_partial_fit_goes_on_and_survives_a_reload(tmp_path):
    def fresh():
        return here(learner=eh.SklearnLearner(SGDClassifier(loss="log_loss"), update="partial_fit"), budget=60)

    whole = fresh()
    expected = drive(whole, Tap())
    half, tap = fresh(), Tap()
    found = drive(half, tap, 13)
    half = saved(half, tmp_path)
    found += drive(half, tap)
    assert found == expected
    assert np.array_equal(half.model().estimator.coef_, whole.model().estimator.coef_)


def test_string_labels_three_classes_and_a_class_that_comes_late():
    c = eh.Campaign(["a", "b"], eh.Optimistic(), eh.Logistic(), budget=200)
    rng = np.random.default_rng(4)
    names = np.array(["cat", "ant", "bee"])
    for i in range(60):
        r = c.ask()
        codes = rng.integers(0, 1 if i < 4 else 2 if i < 20 else 3, 2)
        c.tell(r, rng.normal(size=(2, 2)) + 3 * codes[:, None], names[codes])
    assert c.model().classes.tolist() == ["ant", "bee", "cat"]
    X, y, *_ = c.training_set()
    assert np.allclose(c.model().coef_, eh.Logistic().fit(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize("m", [1, 2, 5, 200])
def test_any_number_of_groups(m):
    c = eh.Campaign([f"g{i}" for i in range(m)], eh.EpsilonGreedy(explore="uniform"), eh.Logistic(), budget=2 * m + 40)
    rng = np.random.default_rng(0)
    while not c.done:
        r = c.ask()
        c.tell(r, rng.normal(size=(2, 2)), rng.integers(0, 2, 2))
    assert sum(c.counts.values()) == m + 20


def test_many_groups_are_warned_about():
    with pytest.warns(UserWarning, match=r"first 40,000 training examples.*xi=0\.2"):
        eh.Campaign([f"g{i}" for i in range(200)], eh.Optimistic(), budget=4000)


def test_a_group_that_has_nothing_left(campaign):
    c = campaign(budget=50)
    tap = Tap()
    drive(c, tap, 5)
    c.retire("v")
    assert {c.ask().group for _ in range(5)} == {"u"}
    c.retire("u")
    with pytest.raises(eh.NothingToAsk, match="groups used up"):
        c.ask()


def test_warm_up_rounds_take_groups_in_turn(campaign):
    c = campaign(budget=100, warmup=10)
    tap = Tap()
    kinds, groups = [], []
    for _ in range(12):
        r = c.ask()
        kinds.append(r.decision.kind)
        groups.append(r.group)
        c.tell(r, *tap(r.group, 2))
    assert kinds[:10] == ["warm-up"] * 10
    assert kinds[10] != "warm-up"
    assert groups[:10].count("u") == 5


def test_a_learner_that_fails_leaves_the_campaign_usable():
    class Moody:
        fail = True

        def fit(self, X, y, *, previous=None, seed=0):
            if Moody.fail:
                raise RuntimeError("no memory")
            return eh.Logistic().fit(X, y)

    c = here(learner=Moody())
    tap = Tap()
    r = c.ask()
    c.tell(r, *tap(r.group, 2))
    assert c.ask().decision.kind == "warm-up"
    failed = c.status()["learner_failed"]
    assert "failed in fit after 2 examples: no memory" in failed["message"]
    with pytest.raises(eh.LearnerError, match="no memory"):
        c.refit()
    assert c.labels_used == 2
    Moody.fail = False
    for request in c.open_requests:
        c.tell(request, *tap(request.group, request.size))
    drive(c, tap)
    assert c.done
    assert c.status()["learner_failed"] is None


CONTINUE = """
import json, sys
import numpy as np
import evenhand as eh
file, drawn = sys.argv[1], json.loads(sys.argv[2])
c = eh.Campaign.open(f"sqlite:///{file}", "campaign")
stream = eh.SyntheticModel1.instance("I").open(5, [0])
for g, n in enumerate(drawn):
    if n:
        stream.draw(np.array([g]), np.array([n]))
found = []
while not c.done:
    r = c.ask()
    found.append(r.group)
    d = stream.draw(np.array([c.groups.index(r.group)]), np.array([r.size]))
    c.tell(r, d.X, d.y)
print(json.dumps(found))
"""


@pytest.mark.parametrize("rule", [eh.Optimistic(c1=0.1), eh.EpsilonGreedy(explore="uniform"), eh.Uniform()])
def test_saved_loaded_in_a_new_process_and_continued_equals_uninterrupted(tmp_path, rule):
    expected = drive(here(rule, budget=160, seed=5), Tap(5))
    c = here(rule, budget=160, seed=5)
    found = drive(c, Tap(5), 33)
    c.save(tmp_path / "c.db")
    drawn = [2 * found.count(g) for g in c.groups]
    done = subprocess.run(
        [sys.executable, "-c", CONTINUE, str(tmp_path / "c.db"), json.dumps(drawn)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found + json.loads(done.stdout) == expected


def test_open_requests_survive_a_reload(tmp_path):
    c = here(eh.Optimistic())
    asked = c.ask_many(3)
    c.abandon(asked[1])
    c.tell(asked[2], *Tap()(asked[2].group, 1))
    again = saved(c, tmp_path)
    assert [r.id for r in again.open_requests] == [asked[0].id, asked[2].id]
    assert [r.outstanding for r in again.open_requests] == [2, 1]
    assert again.open_requests[0].decision.as_dict() == asked[0].decision.as_dict()
    a, b = again.ask(), c.ask()
    assert (a.id, a.size, a.decision.as_dict()) == (b.id, b.size, b.decision.as_dict())


def test_own_strategy_has_to_be_given_again(tmp_path):
    def first(standing, uniforms):
        return eh.Decision.of(standing, "u")

    c = eh.Campaign(["u"], first, budget=10)
    with pytest.raises(ValueError, match=r"strategy is your own object \(first\).*strategy="):
        saved(c, tmp_path).ask()
    assert saved(c, tmp_path, strategy=first).ask().group == "u"
    with pytest.raises(ValueError, match="there is no database"):
        eh.Campaign.open(f"sqlite:///{tmp_path / 'nowhere.db'}", "campaign")
    with pytest.raises(ValueError, match="there is no campaign 'other'"):
        eh.Campaign.open(f"sqlite:///{tmp_path / 'c.db'}", "other")


def test_a_save_replaces_only_an_earlier_save(tmp_path):
    c = here()
    c.save(tmp_path / "c.db")
    c.ask()
    c.save(tmp_path / "c.db")
    assert len(saved(c, tmp_path).open_requests) == 1
    other = here(seed=7)
    other.ask()
    with pytest.raises(ValueError, match="is not an earlier save of 'campaign'"):
        other.save(tmp_path / "c.db")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="name a new file"):
        c.save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_request_of_a_campaign_made_alike_is_refused() -> None:
    """Numbers, events and groups are the same in both; only the moment differs."""
    one, other = (eh.Campaign(["u", "v"], "uniform", None, budget=60, batch=n, seed=1) for n in (2, 3))
    request, own = one.ask(), other.ask()
    assert (request.id, request.event, request.group) == (own.id, own.event, own.group)
    for step in (lambda: other.tell(request, n=4), lambda: other.abandon(request), lambda: other.explain(request)):
        with pytest.raises(eh.InputError, match="another campaign"):
            step()
    assert [waiting.id for waiting in other.open_requests] == [own.id]
    assert other.tell(own, n=own.size).rows == own.size
