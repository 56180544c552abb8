"""Layer-wise relevance propagation, epsilon in every layer (Bach et al. 2015).

On a ReLU network this is input x gradient; on others, such as SiLU ones, it is not.
"""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._lrp import EPSILON_ONLY, applies, relevance


@method(
    "lrp_epsilon",
    applies=applies,
    default=False,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(1, 1),
    reference="Bach et al. 2015",
)
def lrp_epsilon(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: x * W^T(R / y) from layer to layer.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    return relevance(model, images, targets, EPSILON_ONLY)
