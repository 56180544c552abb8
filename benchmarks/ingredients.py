"""Makes `src/attrcheck/datasets/objects.npz`: icons and photographs that `objects` is drawn from.

python benchmarks/ingredients.py TWEMOJI needs Chromium, scikit-image, scikit-learn and the folder
of Twemoji's SVG files (the npm package @discordapp/twemoji 16.0.1, folder dist/svg). Who made each
picture, and its licence: `src/attrcheck/datasets/LICENCES.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import skimage
import sklearn
from numpy.typing import NDArray
from PIL import Image

from attrcheck.datasets.objects import ICONS, INGREDIENTS, PHOTOGRAPHS, SIDE

Bytes = NDArray[np.uint8]

HEIGHT = 192
"""Of a photograph, in pixels: half of a square one still has room for a crop of 96."""
FINE = 4
"""Icons are rendered so many times larger, then averaged."""


def main() -> None:
    """Write the file, and print its size and hash."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("twemoji", type=Path)
    folder = parser.parse_args().twemoji
    icons = np.stack([icon(folder / f"{code}.svg") for codes in ICONS.values() for code in codes])
    pictures: dict[str, Any] = {"icons": icons, **{name: photograph(name) for name in PHOTOGRAPHS}}
    np.savez_compressed(INGREDIENTS, **pictures)
    content = INGREDIENTS.read_bytes()
    print(f"{INGREDIENTS}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def icon(path: Path) -> Bytes:
    """An icon [SIDE, SIDE, 4] with its alpha, each pixel the mean of FINE x FINE."""
    size = SIDE * FINE
    with tempfile.TemporaryDirectory() as name:
        page, shot = Path(name) / "icon.html", Path(name) / "icon.png"
        drawing = path.read_text().replace("<svg ", f'<svg width="{size}" height="{size}" ', 1)
        page.write_text(f'<body style="margin:0;background:transparent">{drawing}</body>')
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--default-background-color=00000000", f"--window-size={size},{size}",
             f"--screenshot={shot}", page.as_uri()],
            check=True,
            capture_output=True,
        )  # fmt: skip
        pixels = np.asarray(Image.open(shot).convert("RGBA"), np.float64)[:size, :size]
    alpha = pixels[..., 3:] / 255
    cells = np.concatenate([pixels[..., :3] * alpha, alpha], 2)
    means = cells.reshape(SIDE, FINE, SIDE, FINE, 4).mean((1, 3))
    colours = means[..., :3] / np.maximum(means[..., 3:], 1e-9)
    return np.concatenate([colours, means[..., 3:] * 255], 2).round().clip(0, 255).astype(np.uint8)


def photograph(name: str) -> Bytes:
    """A photograph [HEIGHT, W, 3] from the wheel of scikit-image or scikit-learn, made small."""
    homes = (Path(skimage.__file__).parent / "data", Path(sklearn.__file__).parent / "datasets")
    [path] = [path for home in homes for path in home.rglob(f"{name}.[jp][pn]g")]
    with Image.open(path) as picture:
        size = round(picture.width * HEIGHT / picture.height), HEIGHT
        return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS))


if __name__ == "__main__":
    main()
