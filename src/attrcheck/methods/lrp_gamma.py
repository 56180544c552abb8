"""Layer-wise relevance propagation, gamma 0.25 and epsilon (Montavon et al. 2019).

Between epsilon (gamma zero) and z+ (gamma without bound).
"""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._lrp import EPSILON_GAMMA, applies, relevance


@method(
    "lrp_gamma",
    not_applicable=applies,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(2, 2),  # one backward is enough between ReLUs, and is all that is run there
    reference="Montavon et al. 2019",
)
def lrp_gamma(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: gamma for convolutions, epsilon for linear layers.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    return relevance(model, images, targets, EPSILON_GAMMA)
