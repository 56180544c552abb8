"""The public face: all that the docs ask people to write, imported when it is first asked for."""

import subprocess
import sys

import pytest

import attrcheck
from attrcheck import contracts
from attrcheck.adapters import vision
from attrcheck.datasets.folders import folder

NOUNS = ("Batch", "Dataset", "Model", "Pictures", "Preprocessing", "Protocol", "Reduction")


@pytest.mark.parametrize("name", [*NOUNS, "Verdict"])
def test_the_nouns_are_those_of_the_contracts(name):
    assert getattr(attrcheck, name) is getattr(contracts, name)


def test_all_that_is_promised_is_there():
    assert all(hasattr(attrcheck, name) for name in attrcheck.__all__)
    assert attrcheck.folder is folder
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = attrcheck.Nothing


def test_torchvision_and_timm_come_through_the_one_door():
    assert attrcheck.torchvision is vision.torchvision
    assert attrcheck.timm is vision.timm


def test_nothing_heavy_is_imported_before_it_is_asked_for():
    code = (
        "import sys, attrcheck\n"
        "attrcheck.Dataset, attrcheck.Pictures, attrcheck.Protocol\n"
        "attrcheck.dataset.select('x=folder:/data/val,hf:a/b')\n"
        "attrcheck.model.select('timm:resnet50,torchvision:vgg16@/x.pth')\n"
        "heavy = {'torch', 'numpy', 'PIL', 'torchvision', 'timm', 'datasets', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "attrcheck.folder\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[]\n['PIL', 'numpy']\n", result.stderr
