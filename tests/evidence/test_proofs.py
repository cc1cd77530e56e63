"""The short form of `evidence/proofs.py`: certificates by every risk, looked at after every delivery."""

import numpy as np
import pytest
from scipy.stats import binomtest

import evenhand as eh
from evidence import proofs


@pytest.mark.parametrize("risk", list(proofs.RISKS))
@pytest.mark.parametrize("behaviour", proofs.BEHAVIOURS)
def test_no_certificate_is_false(risk: str, behaviour: str) -> None:
    assert sum(proofs.is_false(seed, risk, behaviour, labels=40) for seed in (7, 8)) <= 1


def test_the_true_risks_are_those_of_a_large_sample() -> None:
    rng = np.random.default_rng(0)
    world = proofs.World(rng, {"u": proofs.Rates(0.25, 0.2), "v": proofs.Rates(0.15, 0.25)})
    model = eh.Logistic().fit(*world.draw("u", 500)[:2])
    seen = {risk: [] for risk in proofs.RISKS}
    for group in world.groups:
        X, y, _ = world.draw(group, 200_000)
        wrong = model.predict(X) != y
        missed, raised = wrong[y == 1].mean(), wrong[y == 0].mean()
        seen["fnr"].append(missed)
        seen["fpr"].append(raised)
        seen["error"].append(wrong.mean())
        seen["balanced"].append((missed + raised) / 2)
        seen["costs"].append(np.where(y == 1, wrong, wrong / 5).mean())
    for risk, values in seen.items():
        assert world.worst(model, risk) == pytest.approx(max(values), abs=0.005)


@pytest.mark.parametrize("risk", list(proofs.RISKS))
def test_bounds_hold_after_every_label_and_ordinary_ones_do_not(risk: str) -> None:
    found = proofs.every_label(risk, runs=100, labels=150, seed=1)
    assert binomtest(max(found.worst, found.intervals), 100, 0.025, alternative="greater").pvalue > 0.001
    assert found.ordinary > 3 * max(found.worst, 1) or risk == "balanced"  # the mean of two ends is wide
