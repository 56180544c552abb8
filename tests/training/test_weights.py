import json
import os
from hashlib import sha256

import pytest
import torch
from torch import nn

from attrcheck.training import WEIGHTS
from attrcheck.training.weights import (
    WeightsError,
    load_weights,
    read_about,
    save_weights,
    weights_path,
)

TUNED = {
    "base": "0" * 64,
    "removal": "blur_light",
    "grid": 8,
    "accuracy": {"before": 0.9, "after": 0.9},
    "worst_cell": {"before": 0.5, "after": 0.6},
    "similarity": {"label_probability": 0.1, "total_variation": 0.1, "gradcam": None},
}
"""What is on record about a fine-tuning."""


def tiny(outputs: int = 2) -> nn.Module:
    return nn.Sequential(nn.Linear(3, outputs), nn.BatchNorm1d(outputs))


@pytest.fixture
def saved(tmp_path):
    save_weights(tiny(), "toy", "net", 100, tmp_path, accuracy=0.5, seed=7)
    return tmp_path


def message_of(folder, network=None) -> str:
    with pytest.raises(WeightsError) as caught:
        load_weights(network or tiny(), "toy", "net", folder=folder)
    text = str(caught.value)
    assert "reinstall attrcheck or run `attrcheck train --datasets toy --models net`" in text
    return text


def test_what_is_saved_is_what_is_loaded(tmp_path):
    network, other = tiny(), tiny()
    network(torch.randn(8, 3))
    save_weights(network, "toy", "net", 25, tmp_path)
    load_weights(other, "toy", "net", 25, tmp_path)
    for key, value in network.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)


def test_json_beside_the_weights(saved):
    about = json.loads((saved / "toy-net" / "100.json").read_text())
    assert about == read_about("toy", "net", folder=saved)
    assert about["parameters"] == 12
    assert about["accuracy"] == 0.5
    assert about["seed"] == 7
    assert about["torch"] == torch.__version__
    assert len(about["sha256"]) == 64


def test_weights_of_a_fine_tuning_are_named_in_full(tmp_path):
    save_weights(tiny(), "toy", "net", "tuned.blur_light_8", tmp_path, **TUNED)
    load_weights(tiny(), "toy", "net", "tuned.blur_light_8", tmp_path)
    path = tmp_path / "toy-net" / "tuned.blur_light_8.json"
    assert json.loads(path.read_text())["checkpoint"] == "tuned.blur_light_8"
    path.unlink()
    command = "attrcheck finetune --removal blur_light --grid 8 --datasets toy --models net"
    with pytest.raises(WeightsError, match=f"or run `{command}`"):
        load_weights(tiny(), "toy", "net", "tuned.blur_light_8", tmp_path)


def test_no_temporary_file_stays(saved):
    names = sorted(path.name for path in (saved / "toy-net").iterdir())
    assert names == ["100.json", "100.safetensors"]


def test_missing_weights_are_named(tmp_path):
    text = message_of(tmp_path)
    assert f"cannot read {tmp_path / 'toy-net' / '100.safetensors'}" in text


def test_missing_json_is_named(saved):
    path = weights_path("toy", "net", folder=saved).with_suffix(".json")
    path.unlink()
    assert f"cannot read {path}" in message_of(saved)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("\0" * 100, "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "does not state a sha256"),
        ("{}", "does not state a sha256"),
        ('{"sha256": null}', "does not state a sha256"),
        ('{"sha256": "abc"}', "does not state a sha256"),
    ],
    ids=["empty", "cut", "zeros", "deep", "list", "no facts", "null", "half a hash"],
)
def test_broken_json_is_named(saved, content, complaint):
    path = weights_path("toy", "net", folder=saved).with_suffix(".json")
    path.write_text(content)
    assert f"{path} {complaint}" in message_of(saved)


def test_bytes_that_are_not_text_are_named(saved):
    path = weights_path("toy", "net", folder=saved).with_suffix(".json")
    path.write_bytes(b"\xff\xfe{}")
    assert f"{path} is not JSON" in message_of(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_pipe_is_not_waited_for(saved, suffix):
    path = weights_path("toy", "net", folder=saved).with_suffix(suffix)
    path.unlink()
    os.mkfifo(path)
    assert f"cannot read {path} (not a file)" in message_of(saved)


@pytest.mark.parametrize(
    ("fact", "value", "named"),
    [
        ("base", None, "base"),
        ("grid", "four", "grid"),
        ("accuracy", 0.5, "accuracy before"),
        ("worst_cell", {"before": 0.5}, "worst_cell after"),
        ("similarity", {"label_probability": 0.1}, "similarity total_variation"),
    ],
)
def test_a_fact_of_a_fine_tuning_that_is_missing_is_named(tmp_path, fact, value, named):
    save_weights(tiny(), "toy", "net", "tuned.mean_4", tmp_path, **{**TUNED, fact: value})
    path = tmp_path / "toy-net" / "tuned.mean_4.json"
    with pytest.raises(WeightsError) as caught:
        read_about("toy", "net", "tuned.mean_4", tmp_path)
    assert f"{path} does not state {named} as it should" in str(caught.value)
    assert "attrcheck finetune --removal mean --grid 4" in str(caught.value)


def test_one_changed_byte_is_damage(saved):
    path = weights_path("toy", "net", folder=saved)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert f"{path} is damaged" in message_of(saved)


def test_weights_of_another_network_do_not_fit(saved):
    text = message_of(saved, tiny(outputs=5))
    assert f"{weights_path('toy', 'net', folder=saved)} does not fit the net" in text
    assert "size mismatch" in text


def test_missing_and_surplus_keys_do_not_fit(saved):
    assert "Unexpected key" in message_of(saved, nn.Sequential(nn.Linear(3, 2)))


def test_a_failed_load_leaves_the_file_alone(saved):
    before = weights_path("toy", "net", folder=saved).read_bytes()
    message_of(saved, tiny(outputs=5))
    assert weights_path("toy", "net", folder=saved).read_bytes() == before


def test_a_pickle_is_never_opened(saved):
    path = weights_path("toy", "net", folder=saved)
    torch.save(tiny().state_dict(), path)
    about = read_about("toy", "net", folder=saved)
    about["sha256"] = sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(about))
    assert "does not fit" in message_of(saved)


def test_all_shipped_weights_fit_into_a_wheel_of_40_megabytes():
    assert sum(path.stat().st_size for path in WEIGHTS.rglob("*.safetensors")) < 39e6
