"""What "worse off" means: the only code that computes losses.

A risk gives every *relevant* example a number in [0, 1] (log loss: from 0 up); a group's risk is the mean over its
relevant examples. All risks but two depend on the true and the predicted class alone, so `Measure`, a risk for given
classes, is a table of classes by classes that lockstep trials, campaigns and tests share.
"""

from evenhand.risks.log_loss import is_wrong, log_losses, margin_log_losses, of_log_chances
from evenhand.risks.risk import (
    ABOUT_POSITIVE,
    ERROR,
    NAMES,
    RATES,
    TREND_IS_ACCURACY,
    Costs,
    Measure,
    OwnRisk,
    Risk,
    as_risk,
    is_same_class,
    title_of,
)
from evenhand.risks.tally import Outcomes, Tally, accuracy_of

__all__ = [
    "ABOUT_POSITIVE", "ERROR", "NAMES", "RATES", "TREND_IS_ACCURACY", "Costs", "Measure", "Outcomes", "OwnRisk", "Risk", "Tally", "accuracy_of", "as_risk",
    "is_same_class", "is_wrong", "log_losses", "margin_log_losses", "of_log_chances", "title_of",
]  # fmt: skip
