"""One's own code by name: what may be imported, what it must give, and what a mistake says."""

import evenhand as eh
from evenhand.sources import base


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
