"""The model a campaign ends with: chosen for the worst-off group, and why, in `status` after the end."""

import numpy as np
import pytest

import evenhand as eh


def told(counts=(500, 60), learner=None, **settings):
    """A campaign with many examples of one group and few of another that needs other weights."""
    c = eh.Campaign(["u", "v"], eh.Uniform(), learner or eh.Logistic(), budget=400, **settings)
    stream = eh.SyntheticModel1.instance("I").open(0, [0])
    for z, n in enumerate(counts):
        drawn = stream.draw(np.array([z]), np.array([n]))
        c.add(drawn.X, np.array(["no", "yes"])[drawn.y], [c.groups[z]] * n)
    return c


def test_groups_are_weighted_and_plain_is_to_be_had():
    c = told()
    chosen, plain = c.final_model(), c.final_model(plain=True)
    assert "weights" in chosen.choice.chosen
    assert plain.choice.why == "asked for"
    sets = [c.training_set(), c.validation_set()]
    X, y = np.vstack([s.X for s in sets]), np.concatenate([s.y for s in sets])
    assert np.allclose(plain.coef_, eh.Logistic().fit(X, y).coef_, atol=1e-6)
    assert not np.allclose(plain.coef_, chosen.coef_, atol=1e-2)
    assert chosen.predict_proba(X[:2]).shape == (2, 2)


def test_status_says_what_to_deploy_once_the_campaign_is_closed(tmp_path):
    url = f"sqlite:///{tmp_path}/c.db"
    c = told()
    assert c.status()["choice"] is None
    expected = c.final_model().choice
    c.close("done")
    assert c.status()["choice"] == expected.as_dict()
    c.save(tmp_path / "c.db")
    with eh.Campaign.open(url, c.name, read_only=True) as again:
        assert again.status()["choice"] == expected.as_dict()
        assert again.verify().ok
    assert c.final_model().choice == expected


def test_a_campaign_without_a_model_can_be_closed():
    class Broken:
        def fit(self, X, y, *, sample_weight=None, previous=None, seed=0):
            raise RuntimeError("no")

    for c in (eh.Campaign(["u", "v"], budget=20), told(learner=Broken())):
        c.close()
        assert c.status()["choice"] is None


def test_the_model_frozen_by_certify_is_the_chosen_one():
    c = told(distinct=True)
    expected = c.final_model()
    c.certify()
    assert np.array_equal(c.certified_model().coef_, expected.coef_)


@pytest.mark.parametrize("risk", ["fnr", "log"])
def test_the_campaigns_risk_decides(risk):
    c = told(risk=risk, positive="yes" if risk == "fnr" else None)
    assert c.final_model().choice.risk == risk
