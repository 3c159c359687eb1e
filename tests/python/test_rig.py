"""The rig: the model's own output at its rate, cabinets, gains, latency at another rate, parts that come and go."""
import numpy as np
import pytest

import libhankel as hk
from conftest import SOURCE
from libhankel import nam

CORPUS = SOURCE / "tests" / "fuzz" / "corpus" / "nam"
try:
    nam._lib()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

from libhankel.rig import Rig  # noqa: E402  (needs the library that the lines above look for)


def signal(channels, frames=3000):
    return np.random.default_rng(2).uniform(-0.5, 0.5, (channels, frames)).astype("f4")


def test_amp_is_the_model():
    x = signal(2)
    rig = Rig(48000, channels=2)
    facts = rig.load_amp(CORPUS / "wavenet.nam")
    assert facts["architecture"] == "WaveNet" and facts["latency"] == 0 and "Rig of 2" in repr(rig)
    y = np.concatenate([rig.process(np.ascontiguousarray(part)) for part in np.split(x, [1, 65, 2000], axis=1)], axis=1)
    for c in range(2):
        np.testing.assert_array_equal(y[c], nam.Model(CORPUS / "wavenet.nam").process(x[c]))
    rig.reset()
    there = x.copy()
    assert rig.process(there, out=there) is there
    np.testing.assert_array_equal(there, y)


def test_cabinet_and_gains():
    x, h = signal(1)[0], np.random.default_rng(3).uniform(-1, 1, 50).astype("f4")
    rig = Rig(48000)
    assert rig.load_cabinet(h, 48000)["frames"] == 50
    y = rig.process(x, input_db=20, output_db=-14)
    np.testing.assert_allclose(y, np.convolve(x, h)[:3000] * 10 ** 0.3, atol=1e-4)
    assert rig.load_cabinet(None) == {}
    for _ in range(3):
        y = rig.process(x)
    np.testing.assert_array_equal(y, x)


def test_another_rate_and_parts_during_play():
    x = signal(1, 30000)[0]
    rig = Rig(44100)
    rig.load_amp(CORPUS / "slimmable.nam")
    late = rig.latency
    assert late > 0
    np.testing.assert_array_equal(rig.process(x, bypass=True)[late:], x[:-late])
    rig.process(x, model_size=0)
    rig.load_amp(CORPUS / "lstm.nam")
    rig.load_amp(CORPUS / "container.nam")
    assert np.isfinite(rig.process(x, gate_db=-50, level="normalized")).all()
    rig.load_amp(None)
    rig.process(x)
    assert rig.latency == 0
    np.testing.assert_array_equal(rig.process(x), x)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="channels is 5"):
        Rig(48000, channels=5)
    rig = Rig(48000, channels=2)
    with pytest.raises(hk.HankelError) as caught:
        rig.load_amp(tmp_path / "nosuch.nam")
    assert caught.value.name == "HK_IO"
    with pytest.raises(ValueError, match="3 channels"):
        rig.load_cabinet(np.zeros((5, 3), "f4"), 48000)
    for wrong, words in ((np.zeros(5, "f4"), "x has shape"), (np.zeros((2, 5)), "f32"),
                         (np.zeros((2, 10), "f4")[:, ::2], "strides"), (np.zeros((3, 5), "f4"), "x has shape")):
        with pytest.raises(ValueError, match=words):
            rig.process(wrong)
    x = signal(2)
    for words, name in (({"level": "loud"}, "level is"), ({"input_db": 900}, "input_db is 900"),
                        ({"model_size": 2}, "model_size is 2"), ({"out": np.zeros((2, 5), "f4")}, "out has shape")):
        with pytest.raises(ValueError, match=name):
            rig.process(x, **words)
