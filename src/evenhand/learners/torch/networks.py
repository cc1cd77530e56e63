"""The paper's two networks.

CNN-2: Conv(32, 3×3, pad 1)–ReLU–MaxPool2 – Conv(64, 3×3)–ReLU–MaxPool2 – FC 600 – FC 120 – FC classes, ReLU between.
CNN-1 leaves out the second convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.learners.torch.device import require_torch

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class CNN:
    """Makes one of the paper's networks; calling it gives a new module.

    Args:
        shape: channels, height and width of the input.
        convolutions: 1 or 2.
        classes: the number of outputs.
    """

    shape: tuple[int, int, int]
    convolutions: int = 2
    classes: int = 2

    def __call__(self) -> torch.nn.Module:
        """A new module with PyTorch's default initial weights."""
        require_torch()
        from torch import nn

        channels, height, width = self.shape
        layers: list[nn.Module] = []
        for out, padding in ((32, 1), (64, 0))[: self.convolutions]:
            # ReLU after the pooling is the same function with the same gradients, on a quarter of the numbers
            layers += [nn.Conv2d(channels, out, 3, padding=padding), nn.MaxPool2d(2), nn.ReLU()]
            channels, height, width = out, (height - 2 + 2 * padding) // 2, (width - 2 + 2 * padding) // 2
        if min(height, width) < 1:
            raise InputError(f"images of shape {self.shape} are too small for {self.convolutions} convolutions")
        layers += [nn.Flatten(), nn.Linear(channels * height * width, 600), nn.ReLU()]
        layers += [nn.Linear(600, 120), nn.ReLU(), nn.Linear(120, self.classes)]
        return nn.Sequential(*layers)


def cnn1(shape: tuple[int, int, int] = (1, 28, 28), classes: int = 2) -> Callable[[], torch.nn.Module]:
    """The factory of CNN-1."""
    return CNN(shape, 1, classes)


def cnn2(shape: tuple[int, int, int] = (3, 28, 28), classes: int = 2) -> Callable[[], torch.nn.Module]:
    """The factory of CNN-2."""
    return CNN(shape, 2, classes)
