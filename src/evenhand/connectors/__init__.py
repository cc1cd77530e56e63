"""Connectors: they keep a campaign and a labelling tool in step.

- `base`: what a tool must be able to do; a new tool is one file.
- `sync`: the steps that bring both into agreement, the same for every tool.
- `examples`, `answers`: the tool's tasks as the pool, its answers as labels; `agreeing`: one label from several answers.
- `label_studio`: Label Studio.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"label_studio": ["LabelStudio"], "report": ["Report"], "sync": ["Sync"]}
)
