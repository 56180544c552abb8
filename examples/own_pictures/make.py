import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from attrcheck import timm  # as it is, and where torchvision has no kernels, too

CLASSES = ("blue", "green", "red")


def picture(colour, seed):
    """A square of one colour somewhere on grey noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(90, 160, (160, 160, 3), dtype=np.uint8)
    y, x = rng.integers(0, 100, 2)
    pixels[y : y + 60, x : x + 60] = [200 * (name == colour) for name in reversed(CLASSES)]
    return Image.fromarray(pixels)


torch.manual_seed(0)
images, labels = [], []
for label, colour in enumerate(CLASSES):
    Path("pictures", colour).mkdir(parents=True, exist_ok=True)
    for seed in range(100 * label, 100 * label + 12):
        picture(colour, seed).save(f"pictures/{colour}/{seed}.png")
        learnt = torch.tensor(np.asarray(picture(colour, 1000 + seed)))
        images.append(learnt.permute(2, 0, 1) / 127.5 - 1)
        labels.append(label)
network = timm.create_model("test_convnext", num_classes=len(CLASSES))
optimizer = torch.optim.AdamW(network.parameters(), 3e-3)
for _ in range(20):
    logits = network(torch.stack(images))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
    optimizer.step()
save_file(network.state_dict(), "tiny.safetensors", {"class_names": json.dumps(CLASSES)})
