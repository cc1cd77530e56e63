"""Claims: statements with a probability attached.

`bounds` and `sequences` say how far a mean can lie from its risk, `certificates` what follows from a campaign's own
labels, `guarantees` what the theorems promise before a label is bought, `stopping` when a campaign may stop.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["guarantees"])
