"""Strategies against the rules written out by hand, group by group."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.strategies import STRATEGIES, UNIFORMS, parse_strategy
from evenhand.strategies.base import draw, pick


def standing(
    counts, losses, *, validated=None, pending=None, starting=False, available=None, population=None, trend=None
):
    m = len(counts)
    validated = np.full(m, 10) if validated is None else np.asarray(validated)
    pending = np.zeros(m, dtype=int) if pending is None else np.asarray(pending)
    return eh.Standing(
        groups=tuple("abcdefgh"[:m]),
        counts=np.asarray(counts),
        pending=pending,
        validated=validated,
        pending_validation=pending,
        loss_sum=np.asarray(losses) * validated,
        accuracies=np.full((m, 20), np.nan),
        trend=np.zeros(m) if trend is None else np.asarray(trend, dtype=float),
        available=np.ones(m, dtype=bool) if available is None else np.asarray(available),
        starting=np.array(starting),
        population=population,
    )


HALF = np.full(UNIFORMS, 0.5)


@given(
    st.lists(st.tuples(st.integers(1, 200), st.floats(0, 1)), min_size=2, max_size=6),
    st.floats(0, 2),
    st.floats(0.1, 0.9),
    st.floats(0, 0.999),
)
def test_optimistic_is_the_rule_written_out(groups, c0, xi, uniform):
    counts, losses = (np.array(x) for x in zip(*groups, strict=True))
    d = eh.Optimistic(c0=c0, xi=xi)(standing(counts, losses), np.full(UNIFORMS, uniform))
    if any(n < sum(counts) ** xi for n in counts):
        assert d.kind == "forced"
        assert counts[d.index] == min(counts)
    else:
        scores = [loss * 10 / 10 + c0 / np.sqrt(n) for n, loss in zip(counts, losses, strict=True)]
        assert d.kind == "score"
        assert scores[d.index] == pytest.approx(max(scores))
        assert np.allclose(d.score, scores)


def test_three_terms_of_the_theoretical_form():
    bound = eh.VCBound(d=3, delta=0.05)
    n, losses = np.array([4000, 6000]), np.array([0.2, 0.1])
    rule = eh.Optimistic.theoretical(bound, C=1.5)
    d = rule(standing(n, losses), HALF)
    e = bound(n, groups=2)
    pi = n / n.sum()
    assert np.allclose(d.terms["deviation"], e)
    assert np.allclose(d.terms["coupling"], 2 * 1.5 / pi * (pi @ e))
    assert np.allclose(d.score, losses + e + 2 * 1.5 / pi * (pi @ e))
    two = eh.Optimistic.theoretical(bound, C=None)
    assert two.xi == 0.7
    assert set(two(standing(n, losses), HALF).terms) == {"loss", "deviation"}


@pytest.mark.parametrize("n", [[4000, 6000], [4 * 10**8, 6 * 10**8]])
@pytest.mark.parametrize("setting", [{"C": 1.5}, {"C": 1.5, "resolution": 0.05}, {"kappa": 0.3}])
def test_the_coupling_term_is_the_one_its_assumption_gives(setting, n):
    bound = eh.VCBound(d=3)
    d = eh.Optimistic.theoretical(bound, **setting)(standing(np.array(n), np.zeros(2)), HALF)
    pi = np.array([0.4, 0.6])
    excess = 2 * (pi @ bound(np.array(n), groups=2))
    moved = 0.3 * excess**0.5 if "kappa" in setting else 1.5 * max(excess, setting.get("resolution", 0.0))
    assert d.terms["coupling"] == pytest.approx(moved / pi)


def test_trend_is_added_with_its_weight():
    d = eh.Optimistic(c1=0.5, xi=0.1)(standing([50, 50], [0.3, 0.3], trend=[-1.0, 2.0]), HALF)
    assert d.group == "b"
    assert d.terms["trend"].tolist() == [-0.5, 1.0]


def test_own_term_and_own_rule_plug_in():
    def favour_a(standing):
        return np.array([5.0, 0.0])

    d = eh.Optimistic(terms=[favour_a])(standing([50, 50], [0.1, 0.9]), HALF)
    assert d.group == "a"
    assert d.terms["favour_a"].tolist() == [5.0, 0.0]

    def last(standing, uniforms):
        return eh.Decision.of(standing, standing.groups[-1])

    c = eh.Campaign(["x", "y"], last, budget=10)
    assert [c.ask().group for _ in range(3)] == ["y", "y", "y"]


def test_a_term_that_gives_nan_or_the_wrong_shape_is_named():
    def broken(standing):
        return np.array([np.nan, 0.0])

    def short(standing):
        return np.zeros(3)

    with pytest.raises(ValueError, match=r"'broken' gave NaN for group 'a'"):
        eh.Optimistic(terms=[broken])(standing([50, 50], [0.1, 0.9]), HALF)
    with pytest.raises(ValueError, match="number per group"):
        eh.Optimistic(terms=[short])(standing([50, 50], [0.1, 0.9]), HALF)


def test_epsilon_greedy_explores_by_the_population():
    rule = eh.EpsilonGreedy(epsilon=0.3)
    s = standing([5, 5, 5], [0.1, 0.5, 0.2], population=np.array([0.7, 0.1, 0.2]))
    rng = np.random.default_rng(0)
    found = [rule(s, rng.random(UNIFORMS)) for _ in range(4000)]
    explored = [d for d in found if d.kind == "explore"]
    assert abs(len(explored) / 4000 - 0.3) < 0.03
    assert abs(np.mean([d.group == "a" for d in explored]) - 0.7) < 0.05
    assert all(d.terms == {} and d.probability.tolist() == pytest.approx([0.7, 0.1, 0.2]) for d in explored)
    assert {d.group for d in found if d.kind == "score"} == {"b"}


def test_greedy_is_epsilon_zero():
    s = standing([5, 9], [0.5, 0.5])
    rng = np.random.default_rng(1)
    for _ in range(50):
        uniforms = rng.random(UNIFORMS)
        a, b = eh.Greedy()(s, uniforms), eh.EpsilonGreedy(epsilon=0, explore="uniform")(s, uniforms)
        assert (a.group, a.kind) == (b.group, b.kind)


def test_ties_are_fair():
    rng = np.random.default_rng(2)
    share = np.bincount(pick(np.zeros((9000, 3)), np.ones((9000, 3), bool), rng.random(9000)), minlength=3) / 9000
    assert np.allclose(share, 1 / 3, atol=0.02)


@given(st.lists(st.booleans(), min_size=1, max_size=8).filter(any), st.floats(0, 1, exclude_max=True))
def test_only_available_groups_are_picked_or_drawn(available, uniform):
    allowed = np.array(available)
    scores = np.arange(len(allowed), dtype=float)
    assert allowed[pick(scores, allowed, np.array(uniform))]
    chosen, chance = draw(np.ones(len(allowed)), allowed, np.array(uniform))
    assert allowed[chosen]
    assert chance.sum() == pytest.approx(1)


def test_open_requests_count_as_examples_and_as_right_answers():
    s = standing([10, 10], [0.4, 0.4], pending=[5, 0])
    assert s.mean_loss.tolist() == pytest.approx([4 / 15, 0.4])
    assert s.examples.tolist() == [15, 10]
    assert eh.Optimistic()(s, HALF).group == "b"


def test_uncurated_draws_and_uniform_counts():
    s = standing([3, 9], [0.0, 0.0], population=np.array([0.0, 1.0]))
    d = eh.Uncurated()(s, HALF)
    assert (d.group, d.kind, d.terms) == ("b", "population", {})
    d = eh.Uniform()(s, HALF)
    assert (d.group, d.kind) == ("a", "fewest")
    assert d.terms["count"].tolist() == [-3, -9]


def test_an_oracle_draws_by_its_mixture_and_by_what_is_left_of_it():
    rng, rule = np.random.default_rng(3), eh.Oracle([0.2, 0.5, 0.3])
    found = [rule(standing([4, 4, 4], [0.9, 0.1, 0.1]), rng.random(UNIFORMS)) for _ in range(4000)]
    share = np.bincount([int(d.index) for d in found], minlength=3) / 4000
    assert share == pytest.approx([0.2, 0.5, 0.3], abs=0.03)
    assert (found[0].kind, found[0].terms) == ("population", {})
    left = rule(standing([4, 4, 4], [0.9, 0.1, 0.1], available=[True, False, True]), HALF)
    assert left.probability == pytest.approx([0.4, 0.0, 0.6])
    with pytest.raises(ValueError, match="3 shares, and the groups are a, b"):
        rule(standing([4, 4], [0.1, 0.1]), HALF)


@pytest.mark.parametrize("rule", [eh.Optimistic.theoretical(eh.VCBound(3)), "optimistic:bound=rademacher"])
def test_theoretical_forms_need_as_many_validation_as_training_examples(rule):
    with pytest.raises(ValueError, match=r"hold for validation=0.5 alone.* validation=0.1 "):
        eh.simulate("synthetic1:I", [rule], budget=40, trials=1, validation=0.1)
    with pytest.raises(ValueError, match=r"hold for validation=0.5 alone"):
        eh.Campaign(["u", "v"], rule, budget=40, validation=0.25)
    assert eh.Campaign(["u", "v"], rule, budget=40).ask().group in "uv"


@pytest.mark.parametrize(
    "rule",
    [
        eh.Optimistic(),
        eh.Optimistic(c0=0.25, c1=0.5, window=10, xi=0.6),
        eh.Optimistic.theoretical(eh.VCBound(d=3, delta=0.1), C=2.0),
        eh.Optimistic.theoretical(eh.RademacherBound(B=0.5, alpha=0.4), C=None),
        eh.Optimistic.theoretical(eh.VCBound(d=3), C=2.0, resolution=0.01),
        eh.Optimistic.theoretical(eh.VCBound(d=3, two_sided=False), kappa=0.25, xi=0.6),
        eh.EpsilonGreedy(epsilon=0.2, explore="uniform"),
        eh.Greedy(),
        eh.Uniform(),
        eh.Uncurated(),
        eh.Oracle([0.25, 0.75]),
        eh.Oracle(np.array([0.1, 0.2, 0.7])),
    ],
)
def test_text_form_parses_back(rule):
    assert parse_strategy(str(rule)) == (str(rule), rule)
    assert rule == eval_free_copy(rule)


def eval_free_copy(rule):
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(rule)) == rule
    return copy.deepcopy(rule)


def test_labels_and_unknown_names():
    assert parse_strategy("bold=optimistic:c0=1")[0] == "bold"
    assert parse_strategy("mine=uniform") == ("mine", eh.Uniform())
    with pytest.raises(ValueError, match=r"did you mean 'optimistic'"):
        parse_strategy("optimstic")
    with pytest.raises(ValueError, match="no setting 'c2'"):
        parse_strategy("optimistic:c2=1")
    with pytest.raises(ValueError, match="key=value"):
        parse_strategy("optimistic:c0")
    assert set(STRATEGIES) == {"optimistic", "epsilon-greedy", "greedy", "uniform", "uncurated", "oracle"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eh.EpsilonGreedy(epsilon=1.2), "epsilon must lie between 0 and 1, not 1.2"),
        (lambda: eh.EpsilonGreedy(epsilon=-0.1), "epsilon"),
        (lambda: eh.EpsilonGreedy(explore="some"), "explore"),
        (lambda: eh.Optimistic(xi=0), "xi"),
        (lambda: eh.Optimistic(xi=1), "xi"),
        (lambda: eh.Optimistic(c0=-1), "c0"),
        (lambda: eh.Optimistic(c0=float("nan")), "c0"),
        (lambda: eh.Optimistic(window=2), "window"),
        (lambda: eh.Optimistic(C=1.0), "bound"),
        (lambda: eh.Optimistic.theoretical(eh.VCBound(d=3), C=-1), "C must be"),
        (lambda: eh.Optimistic.theoretical(eh.VCBound(d=3), kappa=0.0), "kappa must be"),
        (lambda: eh.Optimistic.theoretical(eh.VCBound(d=3), resolution=-1.0), "resolution must be"),
        (lambda: eh.Optimistic.theoretical(eh.VCBound(d=3), C=None, resolution=0.1), "give C"),
        (lambda: eh.Optimistic(bound=eh.VCBound(d=3), C=1.0, kappa=1.0), "give one of them"),
        (lambda: eh.Optimistic(kappa=1.0), "bound"),
        (lambda: parse_strategy("optimistic:loss=log"), "no setting 'loss'"),
        (lambda: eh.Optimistic.theoretical(lambda n: np.sqrt(n)), "grow"),
        (lambda: eh.Oracle([0.5, 0.6]), "sum to 1"),
        (lambda: eh.Oracle([1.5, -0.5]), "from 0 up"),
        (lambda: eh.Oracle("a+b"), "a share for each group"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_uncurated_with_batches_asks_the_group_furthest_behind_its_share():
    shares = np.array([0.2, 0.5, 0.3])
    now = replace(standing([10, 10, 20], [0.0] * 3, population=shares), batch=5)
    found = eh.Uncurated()(now, HALF)
    behind = shares * 40 - [10, 10, 20]
    assert found.index == np.argmax(behind)
    assert found.kind == "population"
    assert found.terms["behind"] == pytest.approx(behind)
    assert eh.Uncurated()(replace(now, batch=1), HALF).probability is not None


def test_uncurated_with_batches_keeps_to_the_shares_and_breaks_ties_at_random():
    shares, first = np.array([0.2, 0.5, 0.3]), []
    for seed in range(60):
        c = eh.Campaign(["a", "b", "c"], "uncurated", budget=400, batch=5, population=shares, seed=seed)
        first.append(c.ask().group)
        c.tell(1, n=10)
        while not c.done:
            c.tell(c.ask(), n=10)
        assert np.allclose(list(c.mixture.values()), shares, atol=0.03)
    assert set(first) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (eh.Optimistic(), {"c0", "c1", "xi"}),
        (eh.Optimistic(c1=0.2), {"c0", "c1", "window", "xi"}),
        (
            eh.Optimistic.theoretical(eh.VCBound(d=3)),
            {"bound", "d", "delta", "two_sided", "c1", "xi", "C", "resolution"},
        ),
        (
            eh.Optimistic.theoretical(eh.VCBound(d=3), kappa=1.5),
            {"bound", "d", "delta", "two_sided", "c1", "xi", "kappa"},
        ),
        (eh.EpsilonGreedy(), {"epsilon", "explore"}),
        (eh.Greedy(), set()),
    ],
)
def test_the_text_in_full_names_every_setting_that_has_an_effect(rule, named):
    text = rule.in_full()
    assert set(re.findall(r"(\w+)=", text)) == named
    assert parse_strategy(text)[1] == rule
