"""Simulations by other risks than the error: what is measured, said, kept and refused."""

import json

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import evenhand as eh
from evenhand.engine.run import Settings, each_round, run_block
from evenhand.engine.trials import Trials
from evenhand.risks import as_risk
from evenhand.simulation.store import Store
from evidence import risks as benchmark

I = eh.SyntheticModel1.instance("I")
FAST = {"budget": 40, "trials": 3}


def three_classes():
    rng = np.random.default_rng(0)
    n = 400
    label, group = rng.integers(0, 3, n), rng.choice(["a", "b"], n)
    X = rng.normal(size=(n, 2)) + label[:, None] * [1.0, 0.3]
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "group": group, "label": np.array(["p", "q", "r"])[label]})
    return eh.Table(frame, label="label", groups="group")


def test_steering_by_misses_leaves_fewer_of_them():
    """Two groups whose errors and misses disagree: each risk is served best by steering with it."""
    found = benchmark.compare(benchmark.Case(benchmark.CLINICS, 1, 200, 50, 50))
    less = found["less"]["A_opt by error"]
    assert less["fnr"]["low"] > 0
    assert less["error"]["high"] < 0


def test_the_risk_on_a_synthetic_model_is_the_closed_form():
    result = eh.simulate(I, ["uniform"], **FAST, seed=5, risk="fnr", positive=1)
    block = Trials(I, eh.Uniform(), eh.Logistic(), Settings(40, seed=5), [2])
    for _ in each_round(block):
        pass
    block.engine.refit()
    for column, models in (("test_risk", block.memory.models()), ("final_test_risk", block.memory.final_models())):
        expected = I.group_risk(models[0].coef_[0], models[0].intercept_[0], "fnr")
        assert result.final.query("trial == 2")[column].tolist() == pytest.approx(expected.tolist())
    assert result.trace["test_risk"].notna().all()


@pytest.mark.parametrize("risk", ["log", lambda model, X, y: (model.predict(X) != y, np.ones(len(y)))])
def test_risks_without_a_closed_form_are_taken_at_some_rounds(risk):
    result = eh.simulate(eh.SyntheticModel2(), ["optimistic"], **FAST, risk=risk, evaluate=4)
    tested = result.trace.dropna(subset=["test_risk"])
    assert tested["round"].nunique() == 4
    assert tested["round"].max() == 20
    assert result.trace["test_accuracy"].notna().all()
    if risk != "log":  # it is the error, on a sample
        assert tested["test_risk"].to_numpy() == pytest.approx(1 - tested["test_accuracy"].to_numpy(), abs=0.02)


def test_a_table_is_tested_as_fairlearn_does():
    source = eh.datasets.load("german")
    positive = source.classes[1]
    result = eh.simulate(source, ["optimistic"], budget=80, trials=2, risk="fnr", positive=positive, evaluate=2)
    block = Trials(source, eh.Optimistic(), eh.Logistic(), Settings(80, risk=as_risk("fnr", positive)), [0, 1])
    for _ in each_round(block):
        pass
    for t, model in enumerate(block.memory.models()):
        test = block.stream.tests()[t]
        X = block.stream._encoders.encode(test.rows, np.full(len(test.rows), t))
        group = np.repeat(source.groups, test.counts)
        y, predicted = (labels == positive for labels in (source.classes[test.y], model.predict(X)))
        frame = MetricFrame(metrics=false_negative_rate, y_true=y, y_pred=predicted, sensitive_features=group)
        found = result.final[result.final["trial"] == t].set_index("group")["test_risk"]
        assert found[list(source.groups)].tolist() == pytest.approx(frame.by_group[list(source.groups)].tolist())


@pytest.mark.parametrize(
    "risk", ["fnr", "fpr", "balanced", "log", eh.Costs([[0, 1, 2], [3, 0, 1], [1, 1, 0]])], ids=str
)
def test_three_classes(risk):
    positive = "q" if risk in ("fnr", "fpr") else None
    source = three_classes()
    result = eh.simulate(
        source, ["optimistic", "uniform"], budget=60, trials=2, risk=risk, positive=positive, evaluate=3
    )
    assert result.final["test_risk"].notna().all()
    losses = result.trace["validation_loss"].dropna()
    assert len(losses)
    assert losses.min() >= 0
    assert risk == "log" or losses.max() <= 1


def test_summary_trace_and_files_say_which_risk(tmp_path):
    result = eh.simulate(I, ["optimistic", "uniform"], budget=60, trials=6, seed=1, risk="fnr", positive=1)
    summary = result.summary()
    assert (summary["risk"], summary["positive"]) == ("fnr", 1)
    assert result.trace.columns[-2:].tolist() == ["test_accuracy", "test_risk"]
    last = result.final[result.final["strategy"] == "optimistic"]
    worst = last.groupby("trial")["test_risk"].max()
    assert summary["strategies"]["optimistic"]["worst_group_risk"]["mean"] == pytest.approx(worst.mean())
    assert summary["strategies"]["optimistic"]["worst_group_risk"]["sd"] == pytest.approx(worst.std(ddof=1))
    both = last.groupby("trial")["final_test_risk"].max()
    assert summary["strategies"]["optimistic"]["final_worst_group_risk"]["mean"] == pytest.approx(both.mean())
    other = result.final[result.final["strategy"] == "uniform"].groupby("trial")["test_risk"].max()
    (found,) = (d for d in summary["differences"] if d["metric"] == "worst_group_risk")
    assert found["mean"] == pytest.approx((worst - other).mean())
    result.save(tmp_path)
    again = eh.Result.load(tmp_path)
    assert again.summary()["strategies"] == summary["strategies"]
    assert json.loads((tmp_path / "summary.json").read_text())["risk"] == "fnr"
    with pytest.raises(ValueError, match="risk was 'fnr', is 'error'"):
        eh.simulate(I, ["optimistic", "uniform"], budget=60, trials=6, seed=1, resume=again)
    more = eh.simulate(I, ["optimistic", "uniform"], budget=60, trials=8, seed=1, risk="fnr", positive=1, resume=again)
    assert more.final["trial"].nunique() == 8


def test_the_error_says_so_and_has_no_second_column():
    result = eh.simulate(I, ["uniform"], **FAST)
    assert result.summary()["risk"] == "error"
    assert "test_risk" not in result.trace
    assert not any("risk" in d["metric"] for d in result.summary()["differences"])


def test_pictures_are_about_the_risk(tmp_path):
    result = eh.simulate(I, ["optimistic"], **FAST, risk="fnr", positive=1)
    for figure, what in ((result.plot_worst_group(), "of the worst group"), (result.plot_groups(), "(test)")):
        assert figure.axes[0].get_ylabel().startswith("false negative rate")
        assert what in figure.axes[0].get_ylabel()
        figure.savefig(tmp_path / "picture.png")
    assert eh.simulate(I, ["optimistic"], **FAST).plot_worst_group().axes[0].get_ylabel().startswith("test accuracy")


def test_the_fair_mixture_is_that_of_the_risk():
    result = eh.simulate(benchmark.CLINICS, ["uniform"], **FAST, risk="fnr", positive=1)
    assert result.fair_mixture == pytest.approx({"u": 0.0, "v": 1.0}, abs=1e-6)
    even = eh.simulate(benchmark.CLINICS, ["uniform"], **FAST)
    assert even.fair_mixture == pytest.approx({"u": 0.5, "v": 0.5}, abs=1e-6)


def test_kept_trials_have_their_risks(tmp_path):
    store, about = Store(tmp_path), {"risk": "fnr"}
    settings = Settings(40, risk=as_risk("fnr", "1"))
    for trials in ([0, 1], [2, 3]):
        store.put(about, run_block(I, eh.Optimistic(), eh.Logistic(), settings, trials))
    kept = store.get(about, [3, 0])
    whole = run_block(I, eh.Optimistic(), eh.Logistic(), settings, [3, 0])
    np.testing.assert_array_equal(kept.risk, whole.risk)
    np.testing.assert_array_equal(kept.final_risk, whole.final_risk)


class AccuracyOnly:
    """A source as users had it before there were risks."""

    def __init__(self, name="mine"):
        self.name, self.groups, self.classes, self.population = name, I.groups, I.classes, I.population

    def open(self, seed, trials):
        stream = I.open(seed, trials)
        return type("Stream", (), {name: getattr(stream, name) for name in ("draw", "left", "accuracies")})()


def test_kept_trials_of_one_function_are_not_taken_for_those_of_another(tmp_path):
    with pytest.raises(eh.InputError, match="the function '<lambda>' has none: name it by a factory"):
        eh.simulate(I, ["uniform"], **FAST, risk=lambda model, X, y: (y * 0.0, y == y), keep=tmp_path)


def nonsense(model, X, y):
    return np.full(len(y), np.nan), np.ones(len(y))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"risk": "f1"}, "unknown risk 'f1'"),
        ({"risk": "fnr"}, "needs the positive class"),
        ({"risk": "fnr", "positive": "ill"}, "positive='ill' is not a class"),
        ({"positive": 1}, "has no use for it"),
        ({"risk": "costs:0,1,2;1,0,1;1,1,0"}, "3 classes, but there are 2"),
        ({"risk": "costs:0,x;1,0"}, "table of numbers"),
        ({"risk": nonsense}, "gave nan"),
        ({"risk": "log", "learner": LinearSVC()}, "LinearSVC does not give"),
        ({"risk": "log", "strategies": [eh.Optimistic.theoretical(eh.VCBound(d=3))]}, "losses in"),
        ({"risk": "fnr", "positive": 1, "source": AccuracyOnly("mine")}, "source mine tests accuracy only"),
    ],
)
def test_refused(settings, message):
    given = {"source": I, "strategies": ["optimistic"]} | FAST | settings
    with pytest.raises(eh.InputError, match=message):
        eh.simulate(**given)


def test_such_a_source_still_does_for_the_error():
    assert len(eh.simulate(AccuracyOnly(), ["uniform"], **FAST).final) == 2 * 3


def test_the_chosen_model_is_tested_by_the_risk_too(tmp_path):
    settings = {"budget": 80, "trials": 4, "risk": "fnr", "positive": 1, "final": "chosen"}
    result = eh.simulate(I, ["uniform"], **settings, keep=tmp_path)
    worst = result.final.groupby("trial")["chosen_test_risk"].max()
    assert result.summary()["strategies"]["uniform"]["chosen_worst_group_risk"]["mean"] == pytest.approx(worst.mean())
    again = eh.simulate(I, ["uniform"], **settings, keep=tmp_path)
    pd.testing.assert_frame_equal(again.final, result.final)


class Counted(eh.SklearnLearner):
    """Counts how many rows its models predict."""

    rows = 0

    def fit(self, X, y, **settings):
        model, learner = super().fit(X, y, **settings), type(self)

        class Model:
            classes = model.classes

            def predict(self, X):
                learner.rows += X.shape[0]
                return model.predict(X)

        return Model()


@pytest.mark.parametrize("make", [three_classes, lambda: eh.SyntheticModel2()], ids=["table", "synthetic"])
def test_test_rows_are_predicted_once_whatever_the_risk(make):
    predicted = {}
    for risk in ("error", "balanced"):
        Counted.rows = 0
        result = eh.simulate(make(), ["uniform"], Counted(GaussianNB()), budget=40, trials=1, risk=risk, evaluate=3)
        predicted[risk] = Counted.rows
    assert predicted["balanced"] == predicted["error"] > 0
    plain = eh.simulate(make(), ["uniform"], GaussianNB(), budget=40, trials=1, evaluate=3)
    np.testing.assert_allclose(result.final["test_accuracy"], plain.final["test_accuracy"], atol=1e-12)
