"""The commonest mistakes: each gives the sentence that docs/howto/mistakes.md promises.

Page and test are one list: a row of the page without a test here fails, and so does a test
without a row. In the page, `...` stands for what differs from project to project.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import torch
from torch import nn

import attrcheck
from attrcheck import gate
from attrcheck.deciding import unknown
from attrcheck.engine.attribution import attribute
from attrcheck.engine.cases import table
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import check
from attrcheck.errors import AttrcheckError
from attrcheck.models import model as models
from attrcheck.plugin import selection
from tests.plugin.test_options import Config
from tests.worlds import gradient, tiny_dataset, tiny_network

[PAGE] = Path(__file__).parent.parent.glob("docs/**/mistakes.md")
ROW = re.compile(r"^\| (?P<mistake>.+?) \| (?P<message>`.+`) \| (?P<cure>.+) \|$", re.MULTILINE)
MISTAKES = {}


def mistake(title, **given):
    """Register what provokes a mistake of the page; it must raise."""

    def register(provoke):
        assert title not in MISTAKES, title
        MISTAKES[title] = (provoke, given)
        return provoke

    return register


def _promised():
    rows = [row.groupdict() for row in ROW.finditer(PAGE.read_text("utf-8"))]
    assert len(rows) == len({row["mistake"] for row in rows})
    return {row["mistake"]: row["message"].strip("` ") for row in rows}


def in_a_dataset(**changes):
    """A project's own dataset, as it comes of `@attrcheck.dataset`."""
    attrcheck.dataset("mine")(lambda: tiny_dataset(**changes))
    Loader("cpu").dataset("mine")


def with_network(build, **changes):
    """A project's own network on its own data, as a case has them."""
    attrcheck.dataset("mine")(lambda: tiny_dataset(**changes))
    attrcheck.model("net", datasets="mine")(build)
    check(Loader("cpu").pair("mine", "net"))


def with_method(tiny, function, **settings):
    """A project's own method in a case."""
    attribute(tiny.method(function, "my_method", **settings), tiny.pair, 0)


def in_a_notebook(images=None, model=None, targets=(0, 1, 2)):
    """`attrcheck.attribute` with what is given."""
    data = tiny_dataset(count=3)
    images = data.normalise(data.images) if images is None else images
    network = tiny_network(data).eval() if model is None else model
    attrcheck.attribute(gradient, network, images, list(targets), quiet=True)


IMAGES = tiny_dataset(count=3).images

mistake("Bytes in a notebook", images=(IMAGES * 255).to(torch.uint8))(in_a_notebook)
mistake("0 to 255 in a notebook", images=IMAGES * 255)(in_a_notebook)
mistake("Channels last in a notebook", images=torch.zeros(3, 5, 5, 3))(in_a_notebook)
mistake("A model in training mode", model=nn.Sequential(nn.Flatten()))(in_a_notebook)
mistake("No batch in a notebook", images=IMAGES[0])(in_a_notebook)
mistake("Targets from 1 in a notebook", targets=(1, 2, 3))(in_a_notebook)

mistake("Images that are normalised already", images=IMAGES - 0.5, count=3)(in_a_dataset)
mistake("Images of several sizes", images=[*IMAGES[:2], torch.zeros(2, 6, 6)], count=3)(
    in_a_dataset
)
mistake("No images", count=0)(in_a_dataset)
mistake("Labels from 1", labels=torch.arange(8) % 3 + 1)(in_a_dataset)
mistake("One-hot labels", labels=torch.eye(8))(in_a_dataset)
mistake("Fewer labels than images", labels=torch.zeros(7, dtype=torch.int64))(in_a_dataset)
mistake("Mean and std of 0 to 255", mean=(123.7, 116.3))(in_a_dataset)


@mistake("A dataset without `return`")
def _():
    attrcheck.dataset("mine")(lambda: None)
    Loader("cpu").dataset("mine")


@mistake("A dataset that raises")
def _():
    attrcheck.dataset("mine")(lambda: Path("pictures.npz").read_bytes())
    Loader("cpu").dataset("mine")


@mistake("A folder that is not there")
def _(tmp_path):
    attrcheck.folder(tmp_path / "val")


@mistake("An empty class folder")
def _(tmp_path):
    (tmp_path / "val" / "cat").mkdir(parents=True)
    attrcheck.folder(tmp_path / "val")


def linear(outputs=3, inputs=50):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, outputs))


mistake("1,000 classes against 3", build=lambda data: linear(1000))(with_network)
mistake("Probabilities", build=lambda data: nn.Sequential(linear(), nn.Softmax(1)))(with_network)
mistake("Weights of another precision", build=lambda data: linear().half())(with_network)
mistake("A network for another size", build=lambda data: linear(inputs=75))(with_network)
mistake("Weights in place of the network", build=lambda data: linear().state_dict())(with_network)
mistake("A model without `return`", build=lambda data: None)(with_network)
mistake("A class in place of the network", build=lambda data: nn.Flatten)(with_network)


@mistake("A checkpoint that does not fit")
def _():
    def build(data):
        network = linear()
        network.load_state_dict(linear(4).state_dict())
        return network

    with_network(build)


@mistake("A checkpoint of another architecture")
def _(tmp_path):
    path = tmp_path / "mine.pth"
    torch.save(linear().state_dict(), path)
    models.get(f"torchvision:squeezenet1_0@{path}").make(tiny_dataset())


@mistake("A pickled network")
def _(tmp_path):
    path = tmp_path / "mine.pth"
    torch.save(linear(), path)
    models.get(f"torchvision:squeezenet1_0@{path}").make(tiny_dataset())


@mistake("A web page or an LFS pointer in place of a checkpoint")
def _(tmp_path):
    path = tmp_path / "mine.pth"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 44\n")
    models.get(f"torchvision:squeezenet1_0@{path}").make(tiny_dataset())


@mistake("Labels in another order than the model's")
def _(tiny):
    right = tiny_dataset(count=30)
    best = tiny_network(right).eval()(right.normalise(right.images)).argmax(1)
    attrcheck.dataset("tiny_shifted")(lambda: tiny_dataset(count=30, labels=(best + 1) % 3))
    tiny.run("tiny_shifted-linear-morf", accept_accuracy=False)


ANSWERS = {
    "A numpy array": lambda maps: maps.sum(1).numpy(),
    "A method without `return`": lambda maps: None,
    "Maps of another size": lambda maps: maps.sum(1)[:, ::2, ::2],
    "Maps with channels last": lambda maps: maps.permute(0, 2, 3, 1),
    "NaN in maps": lambda maps: maps / 0 * 0,
    "Constant maps": lambda maps: maps * 0,
}
for title, answer in ANSWERS.items():

    @mistake(title)
    def _(tiny, answer=answer):
        with_method(tiny, lambda *inputs: answer(gradient(*inputs)))


@mistake("A method with other arguments")
def _(tiny):
    with_method(tiny, lambda model, images: images)


@mistake("A method that raises")
def _(tiny):
    with_method(tiny, lambda model, images, targets: model.layer4(images))


@mistake("A method in training mode")
def _(tiny):
    with_method(tiny, lambda model, *others: gradient(model.train(), *others))


@mistake("A method that changes its input")
def _(tiny):
    with_method(tiny, lambda model, images, targets: images.mul_(2))


@mistake("A typo in the name of a method")
def _():
    selection.check_names(Config({"attr_methods": "salency"}))


@mistake("A forgotten conftest.py")
def _():
    selection.check_names(Config({"attr_methods": "my_method"}))


@mistake("A model that does not know the dataset")
def _():
    attrcheck.dataset("mine")(tiny_dataset)
    table("mine", "resnet")


@mistake("A hyphen in a name")
def _():
    attrcheck.method("my-method")(gradient)


@mistake("A name that is taken")
def _():
    attrcheck.method("saliency")(gradient)


@mistake("A typo in a setting")
def _():
    attrcheck.method("my_method", constnat="black images")(gradient)


@mistake("A typo in a gate")
def _():
    gate.parse("my_method.metarank >= 0")


@mistake("A gate without a comparison")
def _():
    gate.parse("my_method.meta_rank => 0")


@mistake("A gate on a method that does not run")
def _():
    names = {"method": ["gradient", "random"], "protocol": ["morf"], "case": []}
    raise AttrcheckError(unknown(gate.parse("my_method.low >= 0"), names))


def test_the_page_lists_what_is_provoked_here():
    assert _promised().keys() == MISTAKES.keys()


@pytest.mark.parametrize("title", MISTAKES)
def test_the_message_is_that_of_the_page(title, tiny, tmp_path):
    provoke, given = MISTAKES[title]
    offers = {"tiny": tiny, "tmp_path": tmp_path}
    asked = provoke.__code__.co_varnames[: provoke.__code__.co_argcount]
    with pytest.raises((AttrcheckError, gate.GateSyntaxError, pytest.UsageError)) as caught:
        provoke(**{name: offers[name] for name in asked if name in offers}, **given)
    message = str(caught.value)
    assert "\n" not in message
    pattern = re.sub(r"[][*?]", lambda sign: f"[{sign[0]}]", _promised()[title])
    assert fnmatchcase(message, pattern.replace("...", "*")), message


def test_what_can_only_mean_one_thing_is_put_right():
    plain = tiny_dataset()
    forms = {
        "bytes": (plain.images * 255).round().to(torch.uint8),
        "up to 255": (plain.images * 255).round(),
        "channels last": plain.images.permute(0, 2, 3, 1),
    }
    for images in forms.values():
        with attrcheck.dataset.scratch():
            attrcheck.dataset("mine")(lambda images=images: tiny_dataset(images=images))
            taken = Loader("cpu").dataset("mine").images
            assert taken.shape == plain.images.shape
            assert (taken - plain.images).abs().max() <= 0.5 / 255 + 1e-6


def test_a_graph_that_a_method_keeps_is_cut_off(tiny):
    with_method(tiny, lambda model, images, targets: images.requires_grad_().sum(1) ** 3)
