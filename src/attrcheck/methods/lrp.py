"""Layer-wise relevance propagation, epsilon-plus (Bach et al. 2015, Montavon et al. 2019).

Epsilon-plus, because plain LRP-epsilon on a ReLU network is input x gradient under another name.
"""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._lrp import EPSILON_PLUS, applies, relevance


@method(
    "lrp",
    not_applicable=applies,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(2, 2),  # one backward is enough between ReLUs, and is all that is run there
    reference="Bach et al. 2015",
)
def lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: z+ for convolutions, epsilon for linear layers.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    return relevance(model, images, targets, EPSILON_PLUS)
