"""A data folder as a suite wants it, in small: generated JPEGs and random weights."""

import hashlib
import json
import pickle

import huggingface_hub.constants
import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from attrcheck.adapters.vision import torchvision

CLASSES = ("apple_pie", "bibimbap", "carrot_cake")


def empty_caches(monkeypatch, folder):
    """No public weights, whatever lies in the caches of this machine."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(folder / "torch"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder / "hub"))


def pictures(folder, classes=CLASSES, count=4, side=16, seed=0):
    """A folder for each class, of noise in a colour of its own."""
    random = np.random.default_rng(seed)
    for at, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            values = random.integers(0, 120, (side, side, 3), dtype=np.uint8)
            values[..., at % 3] += 120
            Image.fromarray(values).save(folder / name / f"{number}.jpg", quality=95)


def cifar100(root, monkeypatch):
    """CIFAR-100 in its own format: twelve pictures to evaluate on, twelve to learn from."""
    kind, folder = torchvision.datasets.CIFAR100, root / "cifar-100-python"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)

    def write(name, content):
        data = pickle.dumps(content)
        (folder / name).write_bytes(data)
        return [name, hashlib.md5(data).hexdigest()]

    def part():
        data = random.integers(0, 256, (12, 3 * 32 * 32), dtype=np.uint8)
        return {"data": data, "fine_labels": [index % 3 for index in range(12)]}

    monkeypatch.setattr(kind, "test_list", [write("test", part())])
    monkeypatch.setattr(kind, "train_list", [write("train", part())])
    file, code = write("meta", {"fine_label_names": [*CLASSES]})
    monkeypatch.setattr(kind, "meta", {"filename": file, "key": "fine_label_names", "md5": code})


def weights(path, model="resnet18", classes=CLASSES):
    """Random weights of one of torchvision's networks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    network = torchvision.models.get_model(model, weights=None, num_classes=len(classes))
    save_file(network.state_dict(), path, {"class_names": json.dumps(classes)})
