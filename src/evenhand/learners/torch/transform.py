"""Image bytes to network input: normalised, and in training cropped and flipped at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import torch


def plain_input(batch: torch.Tensor, training: bool) -> torch.Tensor:
    """Numbers as they are, image bytes divided by 255."""
    import torch

    return batch.float().div_(255.0) if batch.dtype == torch.uint8 else batch


@dataclass(frozen=True)
class ImageTransform:
    """Normalises image bytes; crops and flips at random in training, crops the centre otherwise.

    Args:
        mean: what is subtracted, one number per channel, for pixels from 0 to 1.
        std: what the difference is divided by, one number per channel.
        crop: height and width of the crop; None leaves the size.
        padding: zeros put around an image before a random crop.
        flip: the chance of a horizontal flip in training.

    Random numbers come from PyTorch's generator, which a learner sets by its seed.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    crop: int | None = None
    padding: int = 0
    flip: float = 0.0

    def __call__(self, batch: torch.Tensor, training: bool) -> torch.Tensor:
        """A batch of images (n, channels, height, width) as floats."""
        import torch

        if batch.ndim != 4:
            raise InputError(f"images have four dimensions (n, channels, height, width), not {tuple(batch.shape)}")
        if len(self.mean) not in (1, batch.shape[1]):
            raise InputError(f"images have {batch.shape[1]} channels, the transform is for {len(self.mean)}")
        if self.crop is not None:
            batch = self._random_crop(batch, self.crop) if training else self._centre(batch, self.crop)
        if training and self.flip:
            flipped = torch.rand(len(batch), device=batch.device) < self.flip
            batch = torch.where(flipped[:, None, None, None], batch.flip(3), batch)
        mean, std = (
            torch.tensor(v, device=batch.device).mul(255.0).reshape(1, -1, 1, 1) for v in (self.mean, self.std)
        )
        return batch.float().sub_(mean).div_(std)

    def _random_crop(self, batch: torch.Tensor, size: int) -> torch.Tensor:
        import torch

        n, _, height, width = batch.shape
        padded = torch.nn.functional.pad(batch, (self.padding,) * 4)
        top = torch.randint(height + 2 * self.padding - size + 1, (n, 1), device=batch.device)
        left = torch.randint(width + 2 * self.padding - size + 1, (n, 1), device=batch.device)
        step = torch.arange(size, device=batch.device)
        images = torch.arange(n, device=batch.device)[:, None, None]
        # all crops by one index; a loop over images would take longer than the network
        cropped = padded.permute(0, 2, 3, 1)[images, (top + step)[:, :, None], (left + step)[:, None, :]]
        return cropped.permute(0, 3, 1, 2)

    @staticmethod
    def _centre(batch: torch.Tensor, size: int) -> torch.Tensor:
        top, left = ((length - size) // 2 for length in batch.shape[2:])
        return batch[:, :, top : top + size, left : left + size]
