"""What a campaign says about choices of a strategy that gives no probabilities and no scores."""

import pytest

import evenhand as eh


@pytest.mark.parametrize(
    ("kind", "said"),
    [("explore", "u came up in a random draw."), ("score", "u has the largest score."), ("population", "u came up in")],
)
def test_no_number_is_made_up(kind, said):
    campaign = eh.Campaign(
        ["u", "v"],
        lambda standing, uniforms: eh.Decision.of(standing, "u", kind=kind),
        budget=20,
        population=[0.5, 0.5],
    )
    request = campaign.ask()
    words = campaign.explain(request)["words"]
    assert said in words
    assert "nan" not in words
