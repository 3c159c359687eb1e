"""libhankel.cuda without a GPU: what it reads from DLPack, and that it refuses by name. The rest needs the device."""
import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi, cuda


def test_view_reads_shape_strides_and_type():
    whole = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    part = whole[:, ::2, 1:]
    t = cuda.view(part, "x", _abi.CPU)
    assert (t.shape, t.strides, t.type) == ((2, 2, 3), (12, 8, 1), _abi.F32)
    assert t.pointer == part.__array_interface__["data"][0]
    for dtype, kind in ((np.float16, _abi.F16), (np.float64, _abi.F64), (np.int8, _abi.S8), (np.uint8, _abi.U8),
                        (np.int32, _abi.S32)):
        assert cuda.view(np.zeros((1, 2), dtype), "x", _abi.CPU).type == kind


def test_view_of_torch_types():
    torch = pytest.importorskip("torch")
    x = torch.zeros(2, 8, 5, 6, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    t = cuda.view(x, "x", _abi.CPU)
    assert (t.shape, t.type) == ((2, 8, 5, 6), _abi.BF16) and t.strides == x.stride() and t.pointer == x.data_ptr()
    y = cuda._empty(x, (2, 4, 3, 3), True)
    assert tuple(y.shape) == (2, 4, 3, 3) and y.stride(1) == 1 and y.dtype == torch.bfloat16
    assert cuda._empty(x, (2, 4, 3, 3), False).stride() == (36, 9, 3, 1)


@pytest.mark.parametrize("call, word", [
    (lambda x: cuda.conv(x, x), "CUDA device"),
    (lambda x: cuda.conv([1.0], x), "__dlpack__"),
    (lambda x: cuda.view(x.astype(np.complex64), "x", _abi.CPU), "DLPack type"),
])
def test_refusals(call, word):
    with pytest.raises(hk.HankelError, match=word) as e:
        call(np.zeros((1, 2, 3), np.float32))
    assert e.value.name == "HK_INVALID"


class OnDevice:
    """A numpy array that says it lies on the device: enough for what is refused before the device is used."""

    def __init__(self, shape, dtype):
        self.array = np.ones(shape, dtype)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def make(x="f4", w="f4", out="f4", bias=None, **words):
    return cuda.Plan(OnDevice((1, 2, 9), x), OnDevice((4, 2, 3), w), OnDevice(4, bias) if bias else None,
                     out=OnDevice((1, 4, 7), out), **words)


@pytest.mark.parametrize("types,bias,wanted", [
    (dict(out="f8"), "f4", "f64"), (dict(x="f8"), "f4", "f64"), (dict(w="f8"), "f4", "f64"), (dict(), "f8", "f32"),
    (dict(x="f2", w="f2", out="f2"), "f2", "f32"), (dict(x="i1", w="i1", out="i1"), "f4", "s32"),
    (dict(x="i1", w="i1", out="f8"), "f8", "s32")], ids=str)
def test_bias_of_another_type_than_is_read(types, bias, wanted):
    with pytest.raises(hk.HankelError, match=f"bias has .*a dense {wanted} vector"):
        make(bias=bias, **types)


@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_floats_for_integers(name):
    for value in (1.5, 1.0):
        with pytest.raises(ValueError, match=f"{name} is {value}; an integer is required"):
            make(**{name: value})
