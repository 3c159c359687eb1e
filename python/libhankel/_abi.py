"""The C interface of hankel.h, mirrored for ctypes: constants, structs, prototypes.

Nothing here computes. tests/python/test_abi.py compiles a C program that compares every size and offset below with
the header, so the two cannot drift apart.
"""
import ctypes as C

MAX_RANK = 3

STATUS = ("HK_OK", "HK_INVALID", "HK_UNSUPPORTED", "HK_NO_MEMORY", "HK_WORKSPACE", "HK_SYNTAX", "HK_NO_WISDOM",
          "HK_FALLBACK", "HK_DEVICE", "HK_IO")
OK, INVALID, UNSUPPORTED, NO_MEMORY, WORKSPACE, SYNTAX, NO_WISDOM, FALLBACK, DEVICE, IO = range(10)

F32, F64, F16, BF16, S8, U8, S32, F8E4M3 = range(8)
CHANNELS_FIRST, CHANNELS_LAST = range(2)
PADDING = {"explicit": 0, "valid": 1, "same": 2, "same_upper": 2, "same_lower": 3, "causal": 4}
ACT = {"none": 0, "relu": 1, "clip": 2, "leaky": 3, "prelu": 4, "sigmoid": 5, "silu": 6, "tanh": 7, "gelu": 8,
       "gelu_tanh": 9, "hardswish": 10, "hardtanh": 11, "softsign": 12, "user": 13}
GATE = {None: 0, "gated": 1, "blended": 2}
RESIDUAL = {None: 0, "after": 1, "before": 2}
CPU, CUDA = range(2)
ISA = {None: 0, "best": 0, "scalar": 1, "neon": 2, "avx2": 3, "avx512": 4, "amx": 5}
RIGOR = {"estimate": 0, "measure": 1, "patient": 2}
DENORMALS = {"keep": 0, "flush": 1, "exact": 2}
MATH = {"strict": 0, "fast_algorithms": 1, "tf32": 2, "split_f32": 4}

Axes = C.c_int64 * MAX_RANK
Flags = C.c_int32 * MAX_RANK


class Sized(C.Structure):
    """A struct whose first field is its own size, filled in on creation."""

    def __init__(self, **fields):
        super().__init__(size=C.sizeof(type(self)), **fields)


def fields(struct, rank=MAX_RANK):
    """The values of a struct by name, without its size and pointers; arrays as tuples of their first `rank` entries."""
    found = {}
    for name, kind in struct._fields_:
        value = getattr(struct, name)
        if isinstance(value, C.Structure):
            found[name] = fields(value, rank)
        elif isinstance(value, C.Array):
            found[name] = tuple(value[:rank])
        elif name != "size" and kind not in (C.c_void_p, C.c_char_p, UserFn):
            found[name] = value
    return found


def fill(struct, values):
    """Sets what fields() gave."""
    for name, value in values.items():
        if isinstance(value, dict):
            fill(getattr(struct, name), value)
        elif isinstance(value, tuple):
            getattr(struct, name)[:len(value)] = value
        else:
            setattr(struct, name, value)


class Strides(C.Structure):
    _fields_ = [("offset", C.c_int64), ("group", C.c_int64), ("outer", C.c_int64), ("channel", C.c_int64),
                ("at", Axes)]


class RawProblem(Sized):
    _fields_ = [("size", C.c_size_t), ("rank", C.c_int32), ("x_type", C.c_int), ("f_type", C.c_int),
                ("y_type", C.c_int), ("n", C.c_int64), ("c", C.c_int64), ("k", C.c_int64),
                ("feature_groups", C.c_int64), ("batch_groups", C.c_int64), ("in_", Axes), ("window", Axes),
                ("stride", Axes), ("pad_lo", Axes), ("pad_hi", Axes), ("dilation", Axes), ("in_dilation", Axes),
                ("reverse", Flags), ("x_zero", C.c_int32), ("f_zero", C.c_int32), ("y_zero", C.c_int32),
                ("x", Strides), ("f", Strides), ("y", Strides)]


class ConvDesc(Sized):
    _fields_ = [("size", C.c_size_t), ("rank", C.c_int32), ("layout", C.c_int), ("x_type", C.c_int),
                ("f_type", C.c_int), ("y_type", C.c_int), ("n", C.c_int64), ("c", C.c_int64), ("k", C.c_int64),
                ("groups", C.c_int64), ("in_", Axes), ("window", Axes), ("stride", Axes), ("dilation", Axes),
                ("padding", C.c_int), ("pad_lo", Axes), ("pad_hi", Axes), ("output_padding", Axes)]


class Extent(C.Structure):
    _fields_ = [("elements", C.c_int64), ("below", C.c_int64)]


class At(C.Structure):
    """Where a run of values lies in y: n, k, p[] of its first element, and whether it runs along k."""
    _fields_ = [("n", C.c_int64), ("k", C.c_int64), ("p", Axes), ("along_k", C.c_int32)]


UserFn = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(At), C.c_int64, C.c_void_p)


class Epilogue(Sized):
    _fields_ = [("size", C.c_size_t), ("scale", C.c_int32), ("bias", C.c_int32), ("act", C.c_int), ("act2", C.c_int),
                ("a", C.c_float), ("b", C.c_float), ("a2", C.c_float), ("b2", C.c_float), ("gate", C.c_int),
                ("residual", C.c_int), ("beta", C.c_float), ("c_strided", C.c_int32), ("c", Strides),
                ("user", UserFn), ("user2", UserFn), ("store", UserFn), ("cuda_user", C.c_char_p),
                ("cuda_user2", C.c_char_p), ("cuda_store", C.c_char_p)]


class Options(Sized):
    _fields_ = [("size", C.c_size_t), ("threads", C.c_int32), ("parallel_for", C.c_void_p), ("pool", C.c_void_p),
                ("isa", C.c_int), ("device", C.c_int), ("limit_workspace", C.c_int32),
                ("workspace_limit_bytes", C.c_size_t), ("rigor", C.c_int), ("time_limit_s", C.c_double),
                ("wisdom_only", C.c_int32), ("forbid_fallback", C.c_int32), ("batch_invariant", C.c_int32),
                ("denormals", C.c_int), ("math", C.c_uint32), ("unaligned", C.c_int32), ("stateful", C.c_int32),
                ("decision", C.c_char_p)]


class Weights(Sized):
    _fields_ = [("size", C.c_size_t), ("f", C.c_void_p), ("scale", C.c_void_p), ("bias", C.c_void_p),
                ("slopes", C.c_void_p), ("f_zero", C.POINTER(C.c_int32))]


class Args(Sized):
    _fields_ = [("size", C.c_size_t), ("x", C.c_void_p), ("f", C.c_void_p), ("y", C.c_void_p), ("c", C.c_void_p),
                ("scale", C.c_void_p), ("bias", C.c_void_p), ("workspace", C.c_void_p),
                ("workspace_bytes", C.c_size_t), ("stream", C.c_void_p), ("state_in", C.c_void_p),
                ("state_out", C.c_void_p), ("user", C.c_void_p)]


class Candidate(Sized):
    _fields_ = [("size", C.c_size_t), ("decision", C.c_char_p), ("refusal", C.c_char_p), ("predicted_s", C.c_double),
                ("workspace_bytes", C.c_size_t)]


class Machine(Sized):
    _fields_ = [("size", C.c_size_t), ("cpu", C.c_char * 64), ("best_isa", C.c_int), ("cores", C.c_int32),
                ("l1d_bytes", C.c_int64), ("l2_bytes", C.c_int64), ("l3_bytes", C.c_int64),
                ("family", C.c_int32), ("model", C.c_int32), ("stepping", C.c_int32),
                ("features", C.c_char * 64)]


class Gpu(Sized):
    _fields_ = [("size", C.c_size_t), ("name", C.c_char * 64), ("major", C.c_int32), ("minor", C.c_int32),
                ("processors", C.c_int32), ("driver", C.c_int32), ("l2_bytes", C.c_int64), ("kernels", C.c_int32),
                ("tensor_flops", C.c_double), ("fma_flops", C.c_double), ("bytes_per_s", C.c_double)]


CandidateFn = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(Candidate))

_P, _S, _N = C.c_void_p, C.c_char_p, C.c_size_t
_text = [_P, C.c_char_p, _N, C.POINTER(_N)]
_problem = C.POINTER(RawProblem)
#: name -> (result, arguments); a result of None marks a function that returns hk_status.
PROTOTYPES = {
    "hk_version": (_S, []),
    "hk_last_error": (_S, []),
    "hk_type_name": (_S, [C.c_int]),
    "hk_type_bytes": (_N, [C.c_int]),
    "hk_convert": (None, [C.c_int, _P, C.c_int, _P, C.c_int64]),
    "hk_problem_conv": (None, [_problem, C.POINTER(ConvDesc)]),
    "hk_problem_conv_transpose": (None, [_problem, C.POINTER(ConvDesc)]),
    "hk_problem_pad": (None, [_problem, C.c_int]),
    "hk_problem_dense": (None, [_problem, C.c_int]),
    "hk_problem_check": (None, [_problem]),
    "hk_problem_output": (None, [_problem, C.POINTER(C.c_int64), C.POINTER(C.c_int64)]),
    "hk_problem_extents": (None, [_problem] + [C.POINTER(Extent)] * 3),
    "hk_problem_work": (None, [_problem, C.POINTER(C.c_double), C.POINTER(C.c_double)]),
    "hk_problem_grad_input": (None, [_problem, _problem]),
    "hk_problem_grad_filter": (None, [_problem, _problem]),
    "hk_grad_bias": (None, [_problem, _P, _P]),
    "hk_problem_parse": (None, [_problem, _S]),
    "hk_problem_parse_deconv": (None, [_problem, _S]),
    "hk_problem_print": (None, [_problem, _S, _N, C.POINTER(_N)]),
    "hk_epilogue_parse": (None, [C.POINTER(Epilogue), _S]),
    "hk_epilogue_print": (None, [C.POINTER(Epilogue), _S, _N, C.POINTER(_N)]),
    "hk_plan_create": (None, [C.POINTER(_P), _problem, C.POINTER(Epilogue), C.POINTER(Options), C.POINTER(Weights)]),
    "hk_plan_create_like": (None, [C.POINTER(_P), _P, _problem]),
    "hk_plan_destroy": (C.c_int, [_P]),
    "hk_plan_workspace": (_N, [_P]),
    "hk_plan_execute": (None, [_P, C.POINTER(Args)]),
    "hk_plan_decision": (None, _text),
    "hk_plan_print": (None, _text),
    "hk_plan_symbol": (None, [_P, C.c_int32, C.POINTER(_S), C.POINTER(C.c_double)]),
    "hk_plan_error_factor": (C.c_double, [_P]),
    "hk_plan_candidates": (None, [_problem, C.POINTER(Epilogue), C.POINTER(Options), CandidateFn, _P]),
    "hk_wisdom_import": (None, [_S]),
    "hk_wisdom_export": (None, _text[1:]),
    "hk_wisdom_load": (None, [_S]),
    "hk_wisdom_save": (None, [_S]),
    "hk_wisdom_path": (None, _text[1:]),
    "hk_wisdom_forget": (C.c_int, []),
    "hk_wisdom_count": (C.c_int64, []),
    "hk_machine_info": (None, [C.POINTER(Machine)]),
    "hk_isa_name": (_S, [C.c_int]),
    "hk_gpu_info": (None, [C.POINTER(Gpu)]),
    "hk_gpu_alloc": (None, [C.POINTER(_P), _N]),
    "hk_gpu_free": (C.c_int, [_P]),
    "hk_gpu_copy": (None, [_P, _P, _N]),
    "hk_gpu_sync": (None, [_P]),
}
