"""The public names are what DESIGN promises, and when used."""

import subprocess
import sys

import evenhand as eh

PROMISED = {
    "Campaign", "NothingToAsk", "Optimistic", "EpsilonGreedy", "Greedy", "Uniform", "Uncurated", "Oracle", "VCBound",
    "RademacherBound", "Logistic", "SklearnLearner", "SyntheticModel1", "simulate", "Result", "ErrorBelow", "Learner", "Model", "Table", "Images", "TorchLearner", "SyntheticModel2",
    "curate", "campaigns", "Request", "Receipt", "InputError", "LearnerError", "LedgerError",
}  # fmt: skip


def test_promised_names_are_there():
    assert set(eh.__all__) >= PROMISED
    for name in eh.__all__:
        assert getattr(eh, name) is not None
    assert set(dir(eh)) >= set(eh.__all__)


def test_import_alone_loads_nothing_heavy():
    code = "import sys, evenhand; print([m for m in ('numpy', 'sklearn', 'pandas', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
