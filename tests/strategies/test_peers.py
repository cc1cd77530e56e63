"""The peers' rule against a loop written out by hand, and beside the other strategies in a simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.engine.fixed_pool import PooledTrials
from evenhand.engine.run import Settings, run_block
from evenhand.risks import as_risk
from evenhand.strategies import parse_strategy
from evenhand.uniforms import role_states, roles, uniform

SOURCE = eh.SyntheticModel1.instance("I")
SKEWED = eh.SyntheticModel1(SOURCE.means, shares={"u": 0.3, "v": 0.7})


def by_hand(source, rule, budget, seed, trial, batch=1):
    """One trial with lists and loops: groups chosen, and the model after every round."""
    stream, train, held = source.open(seed, [trial]), [], []
    for z, share in enumerate(source.population):
        drawn = stream.draw(np.array([z]), np.array([2 * max(int(share * budget / 2), 1)]))
        rows = [([*x, 1.0], int(y)) for x, y in zip(drawn.X, drawn.y, strict=True)]
        validates = roles(role_states(seed, trial, z), np.arange(len(rows)), 0.5)
        train.append([row for row, is_held in zip(rows, validates, strict=True) if not is_held])
        held.append([row for row, is_held in zip(rows, validates, strict=True) if is_held])
    w, chosen, models = [0.0] * 3, [], []
    for t in range(rule.passes * budget // (2 * batch)):
        uniforms = [float(uniform(seed, 7, trial, t, k)) for k in range(3 + batch)]
        loss = []
        for rows in held:
            wrong = [(sum(a * b for a, b in zip(w, x, strict=True)) > 0) != (y == 1) for x, y in rows]
            loss.append(sum(wrong) / len(wrong))
        worst = [z for z in range(len(loss)) if loss[z] == max(loss)]
        z = worst[int(uniforms[3] * len(worst))]
        if uniforms[0] < rule.epsilon:
            z = 0 if uniforms[1] < source.population[0] else 1
        step = [0.0] * 3
        for u in [uniforms[2], *uniforms[4:]]:
            x, y = train[z][int(u * len(train[z]))]
            p = 1 / (1 + math.exp(-sum(a * b for a, b in zip(w, x, strict=True))))
            step = [s + (y - p) * a / batch for s, a in zip(step, x, strict=True)]
        w = [a + rule.rate * s for a, s in zip(w, step, strict=True)]
        chosen.append(z)
        models.append(w)
    return chosen, np.array(models)


@pytest.mark.parametrize("source", [SOURCE, SKEWED])
@pytest.mark.parametrize(
    ("rule", "batch"),
    [(eh.Peers(epsilon=0.0, rate=0.5), 1), (eh.Peers(epsilon=0.4, passes=3), 1), (eh.Peers(epsilon=0.2), 4)],
)
def test_it_is_the_rule_written_out(source, rule, batch):
    chosen, models = by_hand(source, rule, 40, seed=5, trial=3, batch=batch)
    record = run_block(source, rule, None, Settings(40, batch, seed=5), [2, 3])
    assert record.chosen[:, 1].tolist() == chosen
    stream = source.open(5, [3])
    exact = [stream.linear_accuracies(w[None, :2], w[2:])[0] for w in models]
    np.testing.assert_allclose(record.accuracy[:, 1], exact, atol=1e-12)
    steps = np.cumsum(np.eye(2, dtype=int)[chosen], axis=0) * batch
    np.testing.assert_array_equal(record.counts[:, 1], steps)
    np.testing.assert_array_equal(record.final_accuracy, record.accuracy[-1])


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=8), st.integers(0, 300), st.integers(1, 20))
def test_a_pool_never_costs_more_than_the_budget(weights, more, trial):
    population = np.array(weights) / sum(weights)
    budget = 2 * len(weights) + more
    block = PooledTrials(SOURCE, eh.Peers(), Settings(4), [trial])
    block.settings = Settings(budget)
    pairs = block.shares(population)
    assert pairs.min() >= 1
    assert 2 * pairs.sum() <= budget
    wanted = np.floor(population * budget / 2)
    assert (pairs <= np.maximum(wanted, 1)).all()
    if wanted.min() >= 1:
        assert pairs.tolist() == wanted.tolist()


@pytest.mark.parametrize(("share", "training"), [(0.5, 10), (0.3, 14), (0.25, 15), (0.8, 4)])
def test_the_share_that_validates_is_kept(share, training):
    block = PooledTrials(SOURCE, eh.Peers(), Settings(40, validation=share), [0, 1])
    train, held = block.memory._parts
    assert np.abs(train.counts(2, 2) - training).max() <= 1
    assert (train.counts(2, 2) + held.counts(2, 2) == 20).all()


def test_the_pool_is_what_the_others_meet():
    stream = SOURCE.open(9, [4])
    first = np.concatenate([stream.draw(np.array([z]), np.array([10])).X for z in (0, 1)])
    train, held = PooledTrials(SOURCE, eh.Peers(), Settings(20, seed=9), [4]).memory._parts
    pool = np.concatenate([train.X.toarray(), held.X.toarray()])
    assert sorted(map(tuple, pool)) == sorted(map(tuple, first))


def a_third(model, X, y):
    return (model.predict(X) != y) / 3, np.ones(len(y))


@pytest.mark.parametrize("risk", ["log", a_third])
def test_another_risk_can_choose(risk):
    settings = Settings(60, risk=as_risk(risk))
    block = PooledTrials(eh.datasets.load("german"), eh.Peers(), settings, [0, 1])
    for _ in range(5):
        block.step()
        block.engine.refit()
    held = block.memory._parts[1]
    for t, model in enumerate(block.memory.models()):
        for z in range(2):
            rows = (held.trial == t) & (held.group == z)
            X, y = held.X[rows], held.y[rows]
            p = 1 / (1 + np.exp(-(X.toarray() @ block.memory.coef[t] + block.memory.intercept[t])))
            right = np.where(y == 1, p, 1 - p)
            expected = -np.log(right) if risk == "log" else ((p > 0.5) != (y == 1)) / 3
            assert block.engine.loss_sum[t, z] == pytest.approx(expected.sum())
            assert (model.predict(X) == model.classes[1]).tolist() == (p > 0.5).tolist()


def test_exploring_follows_the_population():
    record = run_block(SKEWED, eh.Peers(epsilon=1.0), None, Settings(1000), range(20))
    assert record.counts[-1, :, 0].sum() / record.counts[-1].sum() == pytest.approx(0.3, abs=0.02)


def test_it_learns():
    record = run_block(SOURCE, eh.Peers(passes=2), None, Settings(400), range(20))
    assert len(record.labels) == 400
    assert 0.85 < record.accuracy[-1].min(axis=-1).mean() < 1 - SOURCE.worst_risk(SOURCE.pi_star())


def test_beside_the_others_on_the_same_trials(tmp_path):
    rules = ["optimistic:c0=0.1", "peers:epsilon=0.2,passes=2"]
    settings = {"budget": 60, "trials": 4, "seed": 3}
    result = eh.simulate(SOURCE, rules, **settings)
    alone = eh.simulate(SOURCE, rules[1:], **settings, jobs=2)
    own = result.trace[result.trace["strategy"] == rules[1]].reset_index(drop=True)
    assert own.drop(columns="strategy").equals(alone.trace.drop(columns="strategy"))
    assert set(own["labels"]) == {60}
    assert own["round"].max() == 60
    assert set(own["kind"]) == {"score", "explore"}
    found = result.summary()
    assert {d["trials"] for d in found["differences"]} == {4}
    ends = found["strategies"][rules[1]]
    assert ends["worst_group_accuracy"] == ends["final_worst_group_accuracy"]
    for figure in (result.plot_mixture(), result.plot_worst_group(), result.plot_groups()):
        figure.savefig(tmp_path / "picture.png")
    point = result.plot_worst_group().axes[0].containers[0]
    last = own[own["round"] == 60].groupby("trial")["test_accuracy"].min()
    assert point.lines[0].get_xydata().tolist() == [[60, pytest.approx(last.mean())]]


def test_more_trials_later_are_the_same_trials():
    rules = ["uniform", "peers"]
    first = eh.simulate(SOURCE, rules, budget=40, trials=2)
    longer = eh.simulate(SOURCE, rules, budget=40, trials=3, resume=first)
    at_once = eh.simulate(SOURCE, rules, budget=40, trials=3)
    assert longer.final.equals(at_once.final)
    assert longer.trace.equals(at_once.trace)


def test_any_learner_may_stand_beside_it():
    from sklearn.naive_bayes import GaussianNB

    result = eh.simulate(SOURCE, ["uniform", "peers"], GaussianNB(), budget=40, trials=2)
    alone = eh.simulate(SOURCE, ["peers"], budget=40, trials=2)
    shown = result.final[result.final["strategy"] == "peers"].reset_index(drop=True)
    assert shown.equals(alone.final)


def test_from_the_shell(tmp_path):
    command = ["simulate", "german", "--strategy", "uniform", "--strategy", "peers:epsilon=0.1", "--budget", "40"]
    result = CliRunner().invoke(app, [*command, "--trials", "2", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "peers:epsilon=0.1" in result.output
    assert set(eh.Result.load(tmp_path / "out").final["strategy"]) == {"uniform", "peers:epsilon=0.1"}


def test_text():
    assert parse_strategy("peers:epsilon=0.3,passes=2") == ("peers:epsilon=0.3,passes=2", eh.Peers(0.3, passes=2))
    assert parse_strategy(str(eh.Peers(rate=0.5)))[1] == eh.Peers(rate=0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eh.Peers(epsilon=2), "epsilon must lie"),
        (lambda: eh.Peers(rate=0), "rate must be"),
        (lambda: eh.Peers(passes=0), "passes must be"),
        (lambda: eh.Campaign(["u", "v"], eh.Peers(), budget=40), "buys all labels at once"),
        (lambda: eh.curate(eh.datasets.load("german"), budget=40, strategy="peers"), "buys all labels at once"),
    ],
)
def test_what_it_cannot_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_two_classes_and_rows_of_numbers():
    from evenhand.engine.memories.fixed_pool import PoolMemory

    with pytest.raises(ValueError, match="two classes, not 3"):
        PoolMemory(np.arange(3), ("u",), 1, 0.1)
    zero = np.zeros(2, dtype=int)
    with pytest.raises(ValueError, match="not images"):
        PoolMemory(np.arange(2), ("u",), 1, 0.1).add(zero, np.zeros((2, 1, 4, 4)), zero, zero, zero == 1)
