from dataclasses import dataclass

import torch

import attrcheck


@attrcheck.protocol("top_pixels")
@dataclass(frozen=True)
class TopPixels(attrcheck.Protocol):
    """What the probability falls by without the tenth of the pixels that a map puts first."""

    share: float = 0.1
    higher_is_better = True
    bounds = (-1.0, 1.0)

    def observe(self, model, batch, maps, shared):
        """The probability of the label, before and after."""
        count = max(1, int(self.share * maps[0].numel()))
        keep = torch.ones_like(maps).flatten(1)
        keep.scatter_(1, maps.flatten(1).argsort(dim=1, descending=True, stable=True)[:, :count], 0)
        removed = batch.images * keep.view_as(maps)[:, None].to(batch.images.dtype)
        after = model(removed).softmax(1).gather(1, batch.labels[:, None])[:, 0]
        return {"before": batch.intact["probability"], "after": after.numpy(force=True)}

    def reduce(self, rows):
        """The mean fall."""
        return attrcheck.Reduction.mean(rows["before"] - rows["after"])
