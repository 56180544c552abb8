"""attrcheck: pytest for image attribution methods.

The six decorators below are the whole of the extension interface; none of them imports torch. Four
functions make methods and protocols from those of other libraries.
"""

from attrcheck.checks import check
from attrcheck.datasets import dataset
from attrcheck.methods import captum_method, gradcam_method, method
from attrcheck.models import model
from attrcheck.protocols import captum_protocol, protocol, quantus_protocol
from attrcheck.removal import removal

__version__ = "0.1.0"
__all__ = [
    "captum_method",
    "captum_protocol",
    "check",
    "dataset",
    "gradcam_method",
    "method",
    "model",
    "protocol",
    "quantus_protocol",
    "removal",
]
