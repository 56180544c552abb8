"""Quantus and our protocols on the same model, images, maps and steps; needs attrcheck[quantus].

    python benchmarks/peers.py

Figures are seconds divided by the seconds of as many bare forward passes as were counted.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from protocols import bare, evaluate, keep_memory, ratio, resnet18
from tabulate import tabulate
from torch import Tensor, nn

from attrcheck.adapters.quantus import BY_PIXEL, library
from attrcheck.graph.predictor import predictor_of
from attrcheck.protocols import protocol as protocols

STEPS = 8
TWINS: dict[str, tuple[str, dict[str, Any]]] = {
    "PixelFlipping": (
        "morf",
        {"features_in_step": 224 * 224 // STEPS, "return_auc_per_sample": True},
    ),
    "RegionPerturbation": ("morf", {"patch_size": 28, "regions_evaluation": STEPS}),
    "ROAD": ("road_morf", {"percentages": [10, 20, 30, 40, 50, 70, 90]}),
}
"""Metrics of Quantus, the counterpart of each here, and the settings that make them alike."""


def quantus_ratio(
    name: str, settings: dict[str, Any], network: nn.Module, images: Tensor, maps: Tensor
) -> float:
    if name in BY_PIXEL:  # as it is, it fails on colour images
        settings = {**settings, "perturb_func": BY_PIXEL[name]}
    metric = getattr(library(), name)(
        disable_warnings=True, display_progressbar=False, abs=False, normalise=False, **settings
    )
    labels = torch.arange(len(images))
    passes = 0

    def count(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal passes
        passes += len(inputs[0])

    def run() -> None:
        metric(
            model=network,
            x_batch=images.numpy(),
            y_batch=labels.numpy(),
            a_batch=maps[:, None].numpy(),
            batch_size=len(images),
            device="cpu",
        )

    handle = network.register_forward_hook(count)
    run()
    handle.remove()
    return ratio(run, lambda: bare(network, images, passes // len(images)))


def our_ratio(name: str, network: nn.Module, images: Tensor, labels: Tensor, maps: Tensor) -> float:
    predictor, protocol = predictor_of(network), protocols.get(name).make()
    evaluate(protocol, predictor, images, labels, maps)
    passes = predictor.passes // len(images)
    return ratio(
        lambda: evaluate(protocol, predictor, images, labels, maps),
        lambda: bare(network, images, passes),
    )


def main() -> None:
    keep_memory()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _, network, images, labels = resnet18()
    maps = torch.rand(len(images), 224, 224, generator=torch.Generator().manual_seed(0))
    rows = [
        [
            name,
            quantus_ratio(name, settings, network, images, maps),
            twin,
            our_ratio(twin, network, images, labels, maps),
        ]
        for name, (twin, settings) in TWINS.items()
    ]
    print(f"torch {torch.__version__}, 1 thread, resnet18 at 224 px")
    print(tabulate(rows, ["Quantus", "ratio", "attrcheck", "ratio"], "github", floatfmt=".2f"))


if __name__ == "__main__":
    main()
