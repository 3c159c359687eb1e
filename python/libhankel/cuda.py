"""Convolutions on a CUDA device, on tensors that lie there: anything with __dlpack__ (PyTorch, CuPy, JAX).

    import torch, libhankel.cuda as hkc
    y = hkc.conv(x, w, bias, padding=1, act="silu")            # torch tensors in, a torch tensor out
    p = hkc.Plan(x, w, bias=b, padding=1); y = p(x)            # filters packed once

x is (N, C, space..), w (K, C/groups, window..), as in torch; memory formats (channels_last) are read from the strides and
never copied. Work is queued on the framework's current stream. bf16, f16, f32, f64, int8 and float8_e4m3fn come through
DLPack as what they are.
"""
import ctypes as C

from . import _abi
from ._arguments import integer
from ._array import NAMES, Tensor, compute_type, is_int8
from ._native import HankelError, invalid, lib
from ._problem import per_axis

_KINDS = {(2, 32): _abi.F32, (2, 64): _abi.F64, (2, 16): _abi.F16, (4, 16): _abi.BF16, (0, 8): _abi.S8,
          (1, 8): _abi.U8, (0, 32): _abi.S32, (10, 8): _abi.F8E4M3}
_CUDA_DEVICE, _MANAGED = 2, 13


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


def view(obj, what, device=_abi.CUDA):
    """The Tensor behind an object's __dlpack__; nothing is copied, the object stays its owner."""
    if not hasattr(obj, "__dlpack__"):
        raise invalid(f"{what} is a {type(obj).__name__}; an object with __dlpack__ on the CUDA device is required")
    on_device = obj.__dlpack_device__()[0] in (_CUDA_DEVICE, _MANAGED)
    if on_device != (device == _abi.CUDA):
        raise invalid(f"{what} does not lie on the {'CUDA device' if device == _abi.CUDA else 'host'}")
    # -1: no synchronisation, the work goes to the same stream; the capsule frees its own handle when it is dropped
    capsule = obj.__dlpack__(stream=-1) if on_device else obj.__dlpack__()
    get = C.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
    t = _DLTensor.from_address(get(capsule, b"dltensor"))
    kind = _KINDS.get((t.code, t.bits))
    if kind is None or t.lanes != 1:
        raise invalid(f"{what} has DLPack type ({t.code}, {t.bits}); one of {', '.join(NAMES)} is required")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    if t.strides:
        strides = tuple(t.strides[i] for i in range(t.ndim))
    else:
        strides, step = (), 1
        for n in reversed(shape):
            strides, step = (step,) + strides, step * n
    return Tensor((t.data or 0) + t.byte_offset, shape, strides, kind, device, obj)


def _stream(obj):
    """The framework's current stream; 0 (the default stream) where it does not say."""
    module = type(obj).__module__.split(".")[0]
    if module == "torch":
        import torch
        return torch.cuda.current_stream(obj.device).cuda_stream
    if module == "cupy":
        import cupy
        return cupy.cuda.get_current_stream().ptr
    return 0


def _empty(like, shape, last):
    """A new tensor beside `like`, of its type and framework; channels innermost where x has them so."""
    order = (0,) + tuple(range(2, len(shape))) + (1,) if last else tuple(range(len(shape)))
    back = tuple(order.index(i) for i in range(len(shape)))
    stored = tuple(shape[i] for i in order)
    module = type(like).__module__.split(".")[0]
    if module == "torch":
        return like.new_empty(stored).permute(back)
    if module == "cupy":
        import cupy
        return cupy.empty(stored, like.dtype).transpose(back)
    raise invalid(f"a {type(like).__name__} cannot be allocated here; give out")


def _axes(value, rank, what):
    return _abi.Axes(*per_axis(value, rank, what))


def _strides(to, tensor, in_group, grouped):
    """hk_strides of a (batch or K, channel, space..) tensor."""
    s = tensor.strides
    to.offset, to.outer, to.channel = 0, s[0], s[1]
    to.group = s[grouped] * in_group
    for i, step in enumerate(s[2:]):
        to.at[i] = step


def _check(status):
    if status != _abi.OK:
        raise HankelError(status, lib.hk_last_error().decode("utf-8", "replace"))


def _dense(t):
    step = 1
    for size, stride in zip(reversed(t.shape), reversed(t.strides)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


class Plan:
    """One convolution of tensors shaped and laid out like x and w, its filters packed on the device.

    stateful: 1D, causal, stride 1; what came before x is given and left in the `state` of a call, a dense tensor of
    state_shape = (N, C, dilation*(window-1)) of x's type."""

    def __init__(self, x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, act=None, out=None, residual=False,
                 math=(), decision=None, stateful=False):
        tx, tw = view(x, "x"), view(w, "w")
        rank = len(tx.shape) - 2
        if rank not in (1, 2, 3) or len(tw.shape) != rank + 2:
            raise invalid(f"x has shape {tx.shape} and w {tw.shape}; (N, C, space..) and (K, C/groups, window..) are required")
        n, c, k, groups = tx.shape[0], tx.shape[1], tw.shape[0], integer(groups, "groups", least=1)
        pad = _axes(padding, rank, "padding")
        desc = _abi.ConvDesc(rank=rank, layout=_abi.CHANNELS_FIRST, x_type=tx.type, f_type=tw.type, y_type=tx.type, n=n,
                             c=c, k=k, groups=groups, stride=_axes(stride, rank, "stride"),
                             dilation=_axes(dilation, rank, "dilation"), pad_lo=pad, pad_hi=pad)
        for i in range(rank):
            desc.in_[i], desc.window[i] = tx.shape[2 + i], tw.shape[2 + i]
        if tw.shape[1] * groups != c:
            raise invalid(f"w has {tw.shape[1]} input channels a group, x has {c} in {groups} groups")
        self.stateful = stateful
        if stateful:
            if padding:
                raise invalid("padding is dilation*(window-1) before x and none behind it in a stateful plan; give none")
            desc.pad_lo[0] = desc.dilation[0] * (desc.window[0] - 1)
            self.state_shape = (n, c, desc.pad_lo[0])
        self.problem = _abi.RawProblem()
        _check(lib.hk_problem_conv(C.byref(self.problem), C.byref(desc)))
        size = (C.c_int64 * _abi.MAX_RANK)()
        _check(lib.hk_problem_output(C.byref(self.problem), size, None))
        self.shape = (n, k) + tuple(size[i] for i in range(rank))
        self.last = c > 1 and tx.strides[1] == 1
        self.layout = tx.shape, tx.strides, tx.type
        ty = view(out if out is not None else _empty(x, self.shape, self.last), "out")
        self.out_layout = ty.shape, ty.strides
        self.problem.y_type = ty.type
        _strides(self.problem.x, tx, c // groups, 1)
        _strides(self.problem.f, tw, k // groups, 0)
        _strides(self.problem.y, ty, k // groups, 1)
        self._make(tw, bias, act, residual, math, decision)

    def _make(self, tw, bias, act, residual, math, decision):
        epilogue = _abi.Epilogue(bias=int(bias is not None), residual=int(residual), beta=1.0)
        if act:
            _check(lib.hk_epilogue_parse(C.byref(epilogue), act.encode()))
            epilogue.bias, epilogue.residual, epilogue.beta = int(bias is not None), int(residual), 1.0
        options = _abi.Options(device=_abi.CUDA, decision=decision.encode() if decision else None,
                                stateful=int(self.stateful))
        for mode in (math,) if isinstance(math, str) else math:
            options.math |= _abi.MATH[mode]
        weights = _abi.Weights(f=tw.pointer)
        if bias is not None:
            tb = view(bias, "bias")
            kind = _abi.S32 if is_int8(tw.type) else compute_type(self.layout[2], tw.type, self.problem.y_type)
            if tb.type != kind or tb.shape != (self.shape[1],) or tb.strides not in ((1,), (0,)) and self.shape[1] > 1:
                raise invalid(f"bias has shape {tb.shape} of {NAMES[tb.type]}; a dense {NAMES[kind]} vector of "
                              f"{self.shape[1]} is required")
            weights.bias = tb.pointer
        self.residual = residual
        self._handle, self._workspace = C.c_void_p(), C.c_void_p()
        _check(lib.hk_plan_create(C.byref(self._handle), C.byref(self.problem), C.byref(epilogue), C.byref(options),
                                  C.byref(weights)))
        self.workspace_bytes = lib.hk_plan_workspace(self._handle)
        if self.workspace_bytes:
            lib.hk_gpu_alloc.argtypes = [C.POINTER(C.c_void_p), C.c_size_t]
            _check(lib.hk_gpu_alloc(C.byref(self._workspace), self.workspace_bytes))

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.hk_plan_destroy(self._handle)
        if getattr(self, "_workspace", None):
            lib.hk_gpu_free.argtypes, lib.hk_gpu_free.restype = [C.c_void_p], None
            lib.hk_gpu_free(self._workspace)

    @property
    def decision(self):
        """The decision as text."""
        buffer = C.create_string_buffer(512)
        _check(lib.hk_plan_decision(self._handle, buffer, len(buffer), None))
        return buffer.value.decode()

    def __call__(self, x, out=None, residual=None, state=None):
        """Queues the convolution on the current stream and returns its output. state is read and overwritten with what comes next."""
        tx = view(x, "x")
        if (tx.shape, tx.strides, tx.type) != self.layout:
            raise invalid(f"x has shape {tx.shape} and strides {tx.strides}; the plan was made for {self.layout[0]} and "
                          f"{self.layout[1]}")
        if out is None:
            out = _empty(x, self.shape, self.last)
        ty = view(out, "out")
        tc = view(residual, "residual") if residual is not None else None
        for what, t in (("out", ty), ("residual", tc)):
            if t is not None and ((t.shape, t.strides) != self.out_layout or t.type != self.problem.y_type):
                raise invalid(f"{what} has shape {t.shape} and strides {t.strides}; the plan was made for "
                              f"{self.out_layout[0]} and {self.out_layout[1]}")
        if (tc is not None) != bool(self.residual):
            raise invalid("residual must be given exactly when the plan was made with one")
        args = _abi.Args(x=tx.pointer, y=ty.pointer, c=tc.pointer if tc else None,
                         workspace=self._workspace.value, workspace_bytes=self.workspace_bytes, stream=_stream(x))
        if (state is not None) != self.stateful:
            raise invalid("state must be given exactly when the plan is stateful")
        if state is not None:
            ts = view(state, "state")
            if ts.shape != self.state_shape or ts.type != tx.type or not _dense(ts):
                raise invalid(f"state has shape {ts.shape} of {NAMES[ts.type]}; a dense tensor of {self.state_shape} of x's type is required")
            args.state_in = args.state_out = ts.pointer
        _check(lib.hk_plan_execute(self._handle, C.byref(args)))
        return out


def conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, act=None, residual=None, out=None, math=()):
    """One convolution; for more than one of a kind make a Plan."""
    plan = Plan(x, w, bias, stride, padding, dilation, groups, act, out, residual is not None, math)
    y = plan(x, out, residual)
    lib.hk_gpu_sync.argtypes = [C.c_void_p]
    if plan.workspace_bytes:  # the workspace goes with the plan
        _check(lib.hk_gpu_sync(_stream(x)))
    return y
