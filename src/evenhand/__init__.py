"""Evenhand tells you which group to collect labelled examples from next.

A fixed labelling budget then buys the best classifier for the group that is worst off. `Campaign` asks and is told;
`simulate` compares strategies; `curate` picks a training set out of a table. Names load when they are first used.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
