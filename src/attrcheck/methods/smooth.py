"""SmoothGrad, SmoothGrad-squared and VarGrad: statistics of maps of noisy copies."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods.gradients import gradient, input_x_gradient
from attrcheck.methods.integrated import STEPS, integrated_gradients
from attrcheck.methods.noise import IDSDS, OURS, SOUNDNESS, mean_square, noisy, variance


@method(
    "smoothgrad",
    default=True,
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of gradient over 16 noisy copies, std 0.15 of the image's range."""
    return noisy(gradient, model, images, targets, seeds)


@method(
    "smoothgrad_abs",
    absolute_of="smoothgrad",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad|: channels are summed before the sign is dropped."""
    return smoothgrad(model, images, targets, seeds=seeds).abs()


@method(
    "smoothgrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of input_x_gradient over 16 noisy copies."""
    return noisy(input_x_gradient, model, images, targets, seeds)


@method(
    "smoothgrad_ixg_abs",
    absolute_of="smoothgrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad_ixg|: channels are summed before the sign is dropped."""
    return smoothgrad_ixg(model, images, targets, seeds=seeds).abs()


@method(
    "smoothgrad_ixg_idsds",
    default=False,
    family="gradient",
    passes=(IDSDS.samples, IDSDS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg_idsds(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of input_x_gradient over 4 noisy copies; std 1 in normalised space."""
    return noisy(input_x_gradient, model, images, targets, seeds, noise=IDSDS)


@method(
    "smoothgrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds)


@method(
    "smoothgrad_ig_abs",
    absolute_of="smoothgrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad_ig|: channels are summed before the sign is dropped."""
    return smoothgrad_ig(model, images, targets, seeds=seeds).abs()


@method(
    "smoothgrad_ig_soundness",
    family="gradient",
    passes=(SOUNDNESS.samples * STEPS, SOUNDNESS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig_soundness(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of integrated_gradients over 20 noisy copies; std 0.3, normalised."""
    return noisy(integrated_gradients, model, images, targets, seeds, noise=SOUNDNESS)


@method(
    "smoothgrad_squared",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Hooker et al. 2019",
)
def smoothgrad_squared(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of squared maps of gradient over 16 noisy copies."""
    return noisy(gradient, model, images, targets, seeds, statistic=mean_square)


@method(
    "smoothgrad_squared_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Hooker et al. 2019",
)
def smoothgrad_squared_ixg(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of squared maps of input_x_gradient over 16 noisy copies."""
    return noisy(input_x_gradient, model, images, targets, seeds, statistic=mean_square)


@method(
    "smoothgrad_squared_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Hooker et al. 2019",
)
def smoothgrad_squared_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of squared maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds, statistic=mean_square)


@method(
    "vargrad",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if noise does not change the gradient, as in a linear model",
)
def vargrad(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """The variance of maps of gradient over 16 noisy copies, std 0.15 of the image's range."""
    return noisy(gradient, model, images, targets, seeds, statistic=variance)


@method(
    "vargrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if the image is of one value, which gets no noise",
)
def vargrad_ixg(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The variance of maps of input_x_gradient over 16 noisy copies."""
    return noisy(input_x_gradient, model, images, targets, seeds, statistic=variance)


@method(
    "vargrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if the image is of one value, which gets no noise",
)
def vargrad_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The variance of maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds, statistic=variance)
