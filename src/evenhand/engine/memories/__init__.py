"""Memories: the example sets of T trials and the models fitted on them.

`base` is the contract, `build` picks the memory that suits a learner: all trials at once for `Logistic` (`lockstep`),
one network updated in place (`torch`), one `fit` per refit for anything else (`single`).
"""
