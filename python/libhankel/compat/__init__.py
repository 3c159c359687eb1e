"""The entry points of other systems, with their own signatures, where every argument works or is refused.

depthwise_conv1d_implicit_gemm   NKI's kernel: dilation, groups, channel counts and the three permutations all count
get_igemm_conv2d                 Wave's kernel generator: also right for images and filters that are not square

vllm_conv1d, sglang_conv1d, fla_conv1d   modules: the causal Conv1D of vLLM, SGLang and FLA, for torch tensors

The first two take numpy arrays, torch tensors (CPU and CUDA) and anything with DLPack, threads=, out=, and make plans
that keep the filter.
"""
from .nki import depthwise_conv1d_implicit_gemm, depthwise_conv1d_plan
from .wave import GLOBAL_ADDRESS_SPACE, SHARED_ADDRESS_SPACE, get_igemm_conv2d

__all__ = ["GLOBAL_ADDRESS_SPACE", "SHARED_ADDRESS_SPACE", "depthwise_conv1d_implicit_gemm", "depthwise_conv1d_plan",
           "get_igemm_conv2d"]
