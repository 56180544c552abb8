import json
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
    save_weights(tiny(), "toy", "net", "tuned.blur_light_8", tmp_path, grid=8)
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
    [("{", "is not JSON"), ("[]", "does not state a sha256"), ("{}", "does not state a sha256")],
)
def test_broken_json_is_named(saved, content, complaint):
    path = weights_path("toy", "net", folder=saved).with_suffix(".json")
    path.write_text(content)
    assert f"{path} {complaint}" in message_of(saved)


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


def test_all_shipped_weights_are_small():
    assert sum(path.stat().st_size for path in WEIGHTS.rglob("*.safetensors")) < 30e6
