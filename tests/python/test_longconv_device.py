"""libhankel.causal_conv1d.long_conv on a CUDA device."""
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("torch sees no CUDA device", allow_module_level=True)

from libhankel.causal_conv1d import long_conv  # noqa: E402
from longconv_suite import check_all, close, formula, tensors  # noqa: E402


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("n, c, length, taps", [(1, 1, 1, 1), (2, 3, 17, 5), (2, 20, 1000, 1000), (1, 3, 30000, 200),
                                                (1, 7, 16384, 16384), (2, 3, 40000, 40000), (1, 300, 4096, 4096)])
def test_formula(n, c, length, taps, last):
    check_all(n, c, length, taps, last=last, device="cuda")


@pytest.mark.parametrize("dtype, f_dtype", [(torch.bfloat16, torch.float32), (torch.float16, torch.float16)])
def test_types(dtype, f_dtype):
    check_all(2, 5, 7000, 7000, dtype=dtype, f_dtype=f_dtype, device="cuda")


@pytest.mark.parametrize("length, taps", [(65536, 65536), (262144, 262144), (1000000, 1000000), (1000001, 3000)])
def test_long(length, taps):
    x, f, skip, pre, post, _ = tensors(1, 3, length, taps, device="cuda")
    close(long_conv(x, f, skip, pre, post), formula(x, f, skip, pre, post))
