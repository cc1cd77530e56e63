"""Simulations: paired, repeatable, equal to a campaign driven by hand, and right on average."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import evenhand as eh
from evenhand.engine.run import Settings, run_block
from evenhand.risks import as_risk
from evenhand.simulation.trace import TRACE_COLUMNS
from evenhand.strategies import parse_strategy

I, II = eh.SyntheticModel1.instance("I"), eh.SyntheticModel1.instance("II")


def favour_v(standing):
    return np.array([0.0, 0.01])


def alternate(standing, uniforms):
    return eh.Decision.of(standing, standing.groups[int(standing.counts.sum() % len(standing.groups))])


def seldom_v(standing, uniforms):
    return eh.Decision.of(standing, "v" if standing.counts.sum() % 8 == 7 else "u")


RULES = [
    eh.Optimistic(),
    eh.Optimistic(c1=0.2, window=8),
    eh.Optimistic(terms=[favour_v]),
    eh.Optimistic.theoretical(eh.VCBound(d=3)),
    eh.Optimistic.theoretical(eh.RademacherBound(B=0.1), C=None),
    eh.EpsilonGreedy(epsilon=0.3),
    eh.Greedy(),
    eh.Uniform(),
    eh.Uncurated(),
    alternate,
]


def by_hand(strategy, seed, trial, budget, *, source=I, learner=None, **settings):
    c = eh.Campaign(
        source.groups,
        strategy,
        learner or eh.Logistic(),
        budget=budget,
        population=source.population,
        seed=(seed, trial),
        **settings,
    )
    stream = source.open(seed, [trial])
    choices, kinds = [], []
    while not c.done:
        r = c.ask()
        choices.append(c.groups.index(r.group))
        kinds.append(r.decision.kind)
        d = stream.draw(np.array([choices[-1]]), np.array([r.size]))
        c.tell(r, d.X, source.classes[d.y])
    return choices, kinds, c


def own(model, X, y):
    return 0.5 * (model.predict(X) != y), X[:, 0] > 0


RISKS = [("log",), ("fnr", 1), ("fpr", 1), ("balanced",), ("costs:0,1;5,0",), (own,)]
RULES_BY_RISK = [(rule, ("error",)) for rule in RULES] + [(eh.Optimistic(c1=0.2, window=8), risk) for risk in RISKS]


def _shown(given):
    """A name that is the same in every process: an address in memory would differ."""
    if isinstance(given, tuple):
        return " ".join(map(_shown, given))
    return getattr(given, "__name__", str(given))


@pytest.mark.parametrize(("rule", "risk"), RULES_BY_RISK, ids=_shown)
def test_a_lockstep_trial_is_a_campaign_choice_by_choice(rule, risk):
    trials, budget = (range(3, 9), 160) if risk == ("error",) else ([3], 100)
    record = run_block(I, rule, eh.Logistic(), Settings(budget, seed=11, risk=as_risk(*risk)), trials)
    given = dict(zip(("risk", "positive"), risk, strict=False), classes=[0, 1])
    for j, trial in enumerate(record.trials):
        choices, _, c = by_hand(rule, 11, int(trial), budget, **given)
        assert record.chosen[:, j].tolist() == choices
        assert record.counts[-1, j].tolist() == list(c.counts.values())
        standing = c.standing()
        if getattr(rule, "needs_scores", True):
            assert record.validation_loss[-1, j] == pytest.approx(standing.mean_loss)


@pytest.mark.parametrize("share", [0.2, 0.3, 0.7])
@pytest.mark.parametrize(
    "rule",
    [rule for rule in RULES if getattr(rule, "bound", None) is None],
    ids=lambda rule: getattr(rule, "__name__", str(rule)),
)
def test_it_is_so_for_every_validation_share(rule, share):
    record = run_block(I, rule, eh.Logistic(), Settings(120, seed=5, batch=2, validation=share), [2])
    choices, _, c = by_hand(rule, 5, 2, 120, batch=2, validation=share)
    assert record.chosen[:, 0].tolist() == choices
    assert record.counts[-1, 0].tolist() == list(c.counts.values())


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("rule", ["optimistic", "epsilon-greedy", "greedy", "uniform", "uncurated"])
def test_a_table_in_lockstep_is_a_campaign(rule, share):
    source = eh.datasets.load("german").with_validation(share)
    record = run_block(source, parse_strategy(rule)[1], eh.Logistic(), Settings(120, validation=share), [1])
    choices, _, c = by_hand(parse_strategy(rule)[1], 0, 1, 120, source=source, validation=share)
    assert record.chosen[:, 0].tolist() == choices
    assert record.counts[-1, 0].tolist() == list(c.counts.values())


@pytest.mark.parametrize("settings", [{"batch": 4}, {"warmup": 12}, {"validation": 0.3, "batch": 3}])
def test_lockstep_equals_campaign_with_batches_and_warm_up(settings):
    record = run_block(II, eh.Optimistic(), eh.Logistic(), Settings(200, seed=2, **settings), range(4))
    for j in range(4):
        choices, _, _ = by_hand(eh.Optimistic(), 2, j, 200, source=II, **settings)
        assert record.chosen[: len(choices), j].tolist() == choices


def test_any_learner_runs_through_the_same_steps():
    record = run_block(I, eh.Optimistic(), eh.SklearnLearner(LogisticRegression(tol=1e-10)), Settings(80), [0])
    ours = run_block(I, eh.Optimistic(), eh.Logistic(), Settings(80), [0])
    assert record.chosen.tolist() == ours.chosen.tolist()
    assert np.allclose(record.validation_loss, ours.validation_loss, equal_nan=True)
    result = eh.simulate(I, [eh.Greedy()], GaussianNB(), budget=40, trials=2, evaluate=3)
    assert result.trace["test_accuracy"].notna().sum() == 2 * 2 * 3


def test_one_or_two_processes_give_the_same_trace():
    def run(jobs, trials=60):
        return eh.simulate(I, ["optimistic", "epsilon-greedy"], budget=60, trials=trials, seed=4, jobs=jobs)

    one, two = run(1), run(2)
    pd.testing.assert_frame_equal(one.trace, two.trace)
    pd.testing.assert_frame_equal(one.final, two.final)
    fewer = run(1, trials=7)
    part = one.trace[one.trace["trial"] < 7].reset_index(drop=True)
    pd.testing.assert_frame_equal(fewer.trace, part)


def test_stopping_and_going_on_equals_one_go():
    long = run_block(I, eh.Optimistic(), eh.Logistic(), Settings(100, seed=3), range(5))
    short = run_block(I, eh.Optimistic(), eh.Logistic(), Settings(50, seed=3), range(5))
    assert short.chosen.tolist() == long.chosen[:25].tolist()


def test_the_trials_are_truly_paired():
    uniform, uncurated = (
        run_block(I, rule, eh.Logistic(), Settings(40, seed=1), [0]) for rule in (eh.Uniform(), eh.Uncurated())
    )
    assert uniform.chosen.tolist() != uncurated.chosen.tolist()
    a, b = by_hand(eh.Uniform(), 1, 0, 40)[2], by_hand(eh.Uncurated(), 1, 0, 40)[2]
    for role in ("training_set", "validation_set"):
        (Xa, _, ga, _), (Xb, _, gb, _) = getattr(a, role)(), getattr(b, role)()
        for group in I.groups:
            mine, other = Xa[ga == group], Xb[gb == group]
            k = min(len(mine), len(other))
            assert np.array_equal(mine[:k], other[:k])


def reference_final_share(model, c0, rounds, trials, seed):
    """A_opt as the paper states it, in plain Python around scikit-learn."""
    rng = np.random.default_rng(seed)
    means = np.array([[model.means[z][y] for y in (0, 1)] for z in model.groups], dtype=float)

    def example(z):
        y = int(rng.integers(2))
        return means[z, y] + rng.normal(size=2), y

    shares = []
    for _ in range(trials):
        train, held, n = [], ([], []), np.zeros(2)
        for t in range(rounds):
            if t < 2:
                z = t
            elif n.min() < n.sum() ** 0.5:
                z = int(rng.choice(np.flatnonzero(n == n.min())))
            else:
                X, y = (np.array(v) for v in zip(*train, strict=True))
                if len(set(y)) == 1:
                    predict = lambda X, only=y[0]: np.full(len(X), only)  # noqa: E731
                else:
                    predict = LogisticRegression().fit(X, y).predict
                loss = [np.mean(predict(np.array([x for x, _ in h])) != [y for _, y in h]) for h in held]
                score = np.array(loss) + c0 / np.sqrt(n)
                z = int(rng.choice(np.flatnonzero(score == score.max())))
            train.append(example(z))
            held[z].append(example(z))
            n[z] += 1
        shares.append(n[0] / n.sum())
    return np.array(shares)


def test_agrees_with_a_plain_implementation_on_average():
    expected = reference_final_share(I, 0.1, 60, 60, 0)
    result = eh.simulate(I, ["optimistic:c0=0.1"], budget=120, trials=200, seed=77)
    found = result.final.query("group == 'u'")["mixture"]
    error = np.sqrt(expected.var(ddof=1) / len(expected) + found.var(ddof=1) / len(found))
    assert abs(found.mean() - expected.mean()) < 3.5 * error


@pytest.mark.parametrize(
    ("source", "strategy", "mean", "sd"),
    [
        (I, "optimistic:c0=0.1", 0.203, 0.083),
        (II, "optimistic:c0=0.1", 0.642, 0.139),
        (I, "epsilon-greedy:epsilon=0.1", 0.208, 0.083),
        (II, "epsilon-greedy:epsilon=0.1", 0.635, 0.139),
        (I, "epsilon-greedy:epsilon=0.5", 0.289, 0.04),
        (I, "optimistic:c0=1.0", 0.275, 0.04),
    ],
)
def test_final_mixtures_of_the_paper_setting(source, strategy, mean, sd):
    result = eh.simulate(source, [strategy], budget=1000, trials=100, seed=2026, trace="none")
    found = result.final.query("group == 'u'")["mixture"]
    assert abs(found.mean() - mean) < 3 * np.hypot(sd, found.std()) / np.sqrt(100)


def test_greedy_gets_stuck_sometimes():
    result = eh.simulate(I, ["greedy"], budget=1000, trials=100, seed=8, trace="none")
    found = result.final.query("group == 'u'")["mixture"]
    assert ((found < 0.02) | (found > 0.9)).any()


def test_a_mapping_names_objects_and_texts_alike():
    settings = {"budget": 40, "trials": 3, "trace": "none"}
    texts = eh.simulate(I, {"bold": "optimistic:c0=2", "even": "other=uniform"}, **settings)
    objects = eh.simulate(I, {"bold": eh.Optimistic(c0=2), "even": eh.Uniform()}, **settings)
    pd.testing.assert_frame_equal(texts.final, objects.final)
    assert texts.settings["strategies"] == objects.settings["strategies"]
    assert texts.labels == ("bold", "even")


def test_trace_summary_and_files(tmp_path):
    result = eh.simulate(I, {"A": eh.Optimistic(), "B": eh.Uniform()}, budget=60, trials=6, seed=1)
    trace = result.trace
    assert tuple(trace.columns) == TRACE_COLUMNS
    assert len(trace) == 2 * 6 * 30 * 2
    assert (trace.groupby(["strategy", "trial", "round"], observed=True)["chosen"].sum() == 1).all()
    assert trace["labels"].max() == 60
    last = trace[trace["round"] == 30]
    assert np.allclose(last.groupby(["strategy", "trial"], observed=True)["mixture"].sum(), 1)
    summary = result.summary()
    by_hand = last[last["strategy"] == "A"].groupby("trial")["test_accuracy"].min()
    assert summary["strategies"]["A"]["worst_group_accuracy"]["mean"] == pytest.approx(by_hand.mean())
    assert summary["strategies"]["A"]["worst_group_accuracy"]["sd"] == pytest.approx(by_hand.std(ddof=1))
    d = next(d for d in summary["differences"] if d["metric"] == "worst_group_accuracy")
    assert d["low"] < d["mean"] < d["high"]
    assert d["trials"] == 6
    result.save(tmp_path)
    again = eh.Result.load(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["schema"] == 1
    pd.testing.assert_frame_equal(again.trace, trace, check_categorical=False)
    assert again.summary()["strategies"] == summary["strategies"]
    with pytest.raises(ValueError, match="no saved result"):
        eh.Result.load(tmp_path / "nowhere")


def test_test_accuracy_on_synthetic_models_is_the_closed_form():
    result = eh.simulate(I, [eh.Uniform()], budget=30, trials=3, seed=5)
    _, _, c = by_hand(eh.Uniform(), 5, 2, 30)
    model = c.model()
    risk = I.group_risk(model.coef_[0], model.intercept_[0])
    last = result.trace.query("trial == 2 and round == 15")["test_accuracy"]
    assert np.allclose(last, 1 - risk, atol=1e-7)
    final = c.final_model(plain=True)
    risk = I.group_risk(final.coef_[0], final.intercept_[0])
    assert np.allclose(result.final.query("trial == 2")["final_test_accuracy"], 1 - risk, atol=1e-7)


def test_the_chosen_model_is_the_one_a_campaign_chooses():
    rules = {"few": seldom_v, "even": eh.Uniform()}
    result = eh.simulate(I, rules, budget=160, trials=4, seed=5, final="chosen")
    differs = False
    for label, rule in rules.items():
        for trial in (1, 3):
            _, _, c = by_hand(rule, 5, trial, 160)
            model = c.final_model()
            risk = I.group_risk(model.coef_[0], model.intercept_[0])
            own = result.final[(result.final["strategy"] == label) & (result.final["trial"] == trial)]
            assert np.allclose(own["chosen_test_accuracy"], 1 - risk, atol=1e-6)
            differs |= model.choice.chosen != "plain, C=1"
    assert differs
    summary = result.summary()["strategies"]["few"]
    worst = result.final.query("strategy == 'few'").groupby("trial")["chosen_test_accuracy"].min()
    assert summary["chosen_worst_group_accuracy"]["mean"] == pytest.approx(worst.mean())
    metrics = {d["metric"] for d in result.summary()["differences"]}
    assert metrics == {"worst_group_accuracy", "final_worst_group_accuracy", "chosen_worst_group_accuracy"}


def test_plain_is_the_default_and_learners_without_weights_stay_plain(tmp_path):
    plain = eh.simulate(I, [eh.Uniform()], budget=30, trials=2)
    assert "chosen_worst_group_accuracy" not in plain.summary()["strategies"]["uniform"]
    settings = {"budget": 30, "trials": 2, "evaluate": 1, "final": "chosen"}
    for learner in (KNeighborsClassifier(1), eh.TorchLearner(lambda: torch.nn.Linear(2, 2))):
        with pytest.warns(UserWarning, match="the chosen models will be the plain ones"):
            final = eh.simulate(I, [eh.Uniform()], learner, **settings).final
        assert np.array_equal(final["chosen_test_accuracy"], final["final_test_accuracy"])
    result = eh.simulate(eh.datasets.load("german"), [eh.Uniform()], **settings)
    result.save(tmp_path)
    assert eh.Result.load(tmp_path).summary()["strategies"] == result.summary()["strategies"]
    with pytest.raises(ValueError, match="final must be 'plain' or 'chosen'"):
        eh.simulate(I, [eh.Uniform()], budget=30, trials=2, final="best")


def test_an_interrupted_run_keeps_finished_trials_and_goes_on(tmp_path):
    calls = []

    def stop_soon(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    settings = {"budget": 40, "trials": 110, "seed": 9}
    rules = [eh.Optimistic(), eh.Uniform()]
    whole = eh.simulate(I, rules, **settings)
    part = eh.simulate(I, rules, **settings, progress=stop_soon)
    assert part.interrupted
    assert 0 < len(part.final) < len(whole.final)
    part.save(tmp_path)
    rest = eh.simulate(I, rules, **settings, resume=eh.Result.load(tmp_path))
    assert not rest.interrupted
    pd.testing.assert_frame_equal(rest.trace, whole.trace, check_categorical=False)
    with pytest.raises(ValueError, match="budget was 40, is 50"):
        eh.simulate(I, rules, **(settings | {"budget": 50}), resume=part)


def test_trials_are_kept_block_by_block_and_not_run_again(tmp_path):
    settings = {"budget": 40, "trials": 210, "seed": 9, "keep": tmp_path}
    seen = []

    def die(done, total):
        seen.append((done, total))
        if len(seen) == 3:
            raise RuntimeError("killed")

    whole = eh.simulate(I, [eh.Optimistic(), eh.Uniform()], budget=40, trials=210, seed=9)
    with pytest.raises(RuntimeError, match="killed"):
        eh.simulate(I, [eh.Optimistic(), eh.Uniform()], **settings, progress=die)
    rest = eh.simulate(I, [eh.Optimistic(), eh.Uniform()], **settings, progress=lambda *found: seen.append(found))
    assert seen[-1] == (120, 120)  # three blocks of a hundred trials were there
    pd.testing.assert_frame_equal(rest.trace, whole.trace, check_categorical=False)
    pd.testing.assert_frame_equal(rest.final, whole.final)
    longer = eh.simulate(I, {"more": eh.Greedy(), "even": eh.Uniform()}, **settings)
    assert longer.final.groupby("strategy")["trial"].nunique().to_dict() == {"more": 210, "even": 210}
    with pytest.raises(eh.InputError, match="budget was 40, is 50"):
        eh.simulate(I, [eh.Uniform()], **(settings | {"budget": 50}))


def test_going_on_with_other_data_is_refused(tmp_path):
    frame = pd.DataFrame({"x": range(40), "sex": ["f", "m"] * 20, "y": [0, 1, 1, 0] * 10})
    run = {"budget": 10, "trials": 1, "keep": tmp_path}
    first = eh.simulate(eh.Table(frame, label="y", groups="sex"), ["uniform"], **run)
    other = eh.Table(frame.assign(x=frame["x"] + 1), label="y", groups="sex")
    for way in ({"keep": tmp_path}, {"resume": first, "keep": None}):
        with pytest.raises(eh.InputError, match=r"digest was '[0-9a-f]+', is '[0-9a-f]+'"):
            eh.simulate(other, ["uniform"], **(run | way))


def test_traces_can_be_short():
    chosen = eh.simulate(I, [eh.Uniform()], budget=40, trials=2, trace="chosen").trace
    assert len(chosen) == 2 * 20
    assert chosen["chosen"].all()
    none = eh.simulate(I, [eh.Uniform()], budget=40, trials=2, trace="none")
    assert none.trace.empty
    with pytest.raises(ValueError, match="full trace"):
        none.plot_mixture()


def test_pictures_can_be_drawn(tmp_path):
    result = eh.simulate(I, ["optimistic", "uniform"], budget=40, trials=3)
    for i, figure in enumerate((result.plot_mixture(), result.plot_worst_group(), result.plot_groups())):
        figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000
    labels = [text.get_text() for text in result.plot_mixture().axes[0].get_legend().get_texts()]
    assert labels[-1] == "fair mixture π* = 0.20"
    with pytest.raises(ValueError, match="unknown group"):
        result.plot_mixture("w")


@pytest.mark.parametrize(
    ("strategies", "settings", "message"),
    [
        ([], {}, "no strategies"),
        (["uniform", "uniform"], {}, "two strategies are named 'uniform'"),
        (["uniform"], {"trials": 0}, "trials"),
        (["uniform"], {"budget": 2}, "warm-up round"),
        (["uniform"], {"trace": "some"}, "trace"),
        (["uniform"], {"evaluate": 0}, "evaluate"),
        (["uniform"], {"seed": -3}, "seed"),
    ],
)
def test_bad_input(strategies, settings, message):
    with pytest.raises(ValueError, match=message):
        eh.simulate(I, strategies, **({"budget": 40, "trials": 2} | settings))


def test_the_risk_can_be_a_callable():
    def half(model, X, y):
        return 0.5 * (np.asarray(model.predict(X)) != y), np.ones(len(y))

    own = eh.simulate(I, [eh.Optimistic(c0=0.1)], budget=40, trials=2, risk=half).trace
    plain = eh.simulate(I, [eh.Optimistic(c0=0.2)], budget=40, trials=2).trace
    assert own["chosen"].tolist() == plain["chosen"].tolist()
    assert np.allclose(own["validation_loss"] * 2, plain["validation_loss"], equal_nan=True)


def test_a_source_by_its_name_is_the_same_source():
    rules, sizes = [eh.Uniform()], {"budget": 20, "trials": 2}
    named = eh.simulate("synthetic1:I", rules, **sizes)
    assert named.trace.equals(eh.simulate(eh.SyntheticModel1.instance("I"), rules, **sizes).trace)
    with pytest.raises(eh.InputError, match="did you mean 'adult'"):
        eh.simulate("adlut", rules, **sizes)
    with pytest.raises(eh.InputError, match="a list is not a source"):
        eh.simulate([[1, 2]], rules, **sizes)
