"""Amp models: the small files of the fuzzer's corpus play block by block, from files and from memory."""
import pickle

import numpy as np
import pytest

import libhankel as hk
from conftest import SOURCE
from libhankel import nam

FILES = sorted((SOURCE / "tests" / "fuzz" / "corpus" / "nam").glob("*.nam"))
try:
    nam._lib()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_blocks_and_memory(path):
    model, same = nam.Model(path), nam.Model(path.read_bytes())
    info = model.info
    assert info["architecture"] and info["bytes"] > 0 and info["in_channels"] >= 1 and "Model" in repr(model)
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (300, info["in_channels"])).astype("f4")
    want = same.process(x)
    assert want.shape == (300, info["out_channels"]) and np.isfinite(want).all()
    parts = [model.process(part) for part in (x[:7], x[7:64], x[64:64], x[64:])]
    np.testing.assert_allclose(np.concatenate(parts), want, atol=1e-6)
    model.reset()
    again = np.zeros_like(want)
    assert model.process(x, out=again) is again
    np.testing.assert_allclose(again, want, atol=1e-6)
    other = pickle.loads(pickle.dumps(same))
    np.testing.assert_allclose(other.process(x), want, atol=1e-6)


def test_one_channel_double_torch_and_in_place():
    path = SOURCE / "tests" / "fuzz" / "corpus" / "nam" / "wavenet.nam"
    x = np.linspace(-1, 1, 100, dtype="f4")
    want = nam.Model(path).process(x)
    assert want.shape == (100,)
    np.testing.assert_allclose(nam.Model(path).process(x.astype("f8")), want, atol=1e-6)
    np.testing.assert_allclose(nam.Model(path, rational_tanh=True, isa="scalar").process(x), want, atol=0.1)
    there = x.copy()
    assert nam.Model(path).process(there, out=there) is there
    np.testing.assert_array_equal(there, want)
    torch = pytest.importorskip("torch")
    y = nam.Model(path).process(torch.from_numpy(x))
    assert type(y) is torch.Tensor
    np.testing.assert_array_equal(y.numpy(), want)


def test_sizes():
    model = nam.Model(SOURCE / "tests" / "fuzz" / "corpus" / "nam" / "slimmable.nam")
    assert model.info["sizes"] > 1
    model.set_size(0)
    assert model.info["at_size"] == 0
    with pytest.raises(ValueError, match="2"):
        model.set_size(2)


def test_refusals(tmp_path):
    with pytest.raises(hk.HankelError) as caught:
        nam.Model(tmp_path / "nosuch.nam")
    assert caught.value.name == "HK_IO"
    with pytest.raises(ValueError):
        nam.Model(b"{}")
    model = nam.Model(FILES[0])
    for wrong, words in ((np.zeros((3, 4, 5), "f4"), "x has shape"), (np.zeros(3, "i4"), "f32 or f64"),
                         (np.zeros((20, 2), "f4")[:, :1], "dense"), (np.zeros((3, 7), "f4"), "x has shape")):
        with pytest.raises(ValueError, match=words):
            model.process(wrong)
    with pytest.raises(ValueError, match="out has shape"):
        model.process(np.zeros((9, 1), "f4"), out=np.zeros((8, 1), "f4"))
