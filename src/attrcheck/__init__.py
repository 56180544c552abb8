"""attrcheck: pytest for image attribution methods.

The six decorators below are the whole of the extension interface; none of them imports torch. Two
functions make methods from the classes of other libraries.
"""

from attrcheck.checks import check
from attrcheck.datasets import dataset
from attrcheck.methods import captum_method, gradcam_method, method
from attrcheck.models import model
from attrcheck.protocols import protocol
from attrcheck.removal import removal

__version__ = "0.1.0"
__all__ = [
    "captum_method",
    "check",
    "dataset",
    "gradcam_method",
    "method",
    "model",
    "protocol",
    "removal",
]
