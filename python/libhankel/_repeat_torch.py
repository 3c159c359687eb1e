"""What _repeat must know of torch tensors on the CPU. Loaded when the first one is seen."""
import torch


class _Torch:
    """As _repeat._Numpy, of a tensor."""

    @staticmethod
    def layout(tensor):
        if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_neg():
            return None
        if tensor.requires_grad and torch.is_grad_enabled():
            return None  # the long way refuses it
        return tensor.shape, tensor.stride(), tensor.dtype

    @staticmethod
    def address(tensor):
        return tensor.data_ptr()

    @staticmethod
    def steps(tensor):
        size = tensor.element_size()
        return tuple(stride * size for stride in tensor.stride()), size

    @staticmethod
    def writable(tensor):
        return True

    @staticmethod
    def maker(result):
        shape, strides, dtype = result.shape, result.stride(), result.dtype
        return lambda: torch.empty_strided(shape, strides, dtype=dtype)


KINDS = {torch.Tensor: _Torch, torch.nn.Parameter: _Torch}
