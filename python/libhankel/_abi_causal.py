"""hk_causal of hankel.h, mirrored for ctypes. tests/python/test_abi.py compares it with the header."""
import ctypes as C
import struct

from ._abi import Options, Sized

BATCH, OFFSETS, IDS = range(3)
_I, _P, _N = C.c_int64, C.c_void_p, C.c_size_t


class CausalStrides(C.Structure):
    _fields_ = [("outer", _I), ("channel", _I), ("time", _I)]


class CausalDesc(Sized):
    _fields_ = [("size", _N), ("x_type", C.c_int), ("f_type", C.c_int), ("y_type", C.c_int), ("state_type", C.c_int),
                ("n", _I), ("c", _I), ("length", _I), ("longest", _I), ("window", _I), ("dilation", _I),
                ("packing", C.c_int), ("x", CausalStrides), ("y", CausalStrides), ("pre", CausalStrides),
                ("post", CausalStrides), ("residual", CausalStrides), ("f_channel", _I), ("f_tap", _I),
                ("has_bias", C.c_int32), ("has_pre", C.c_int32), ("has_post", C.c_int32), ("has_residual", C.c_int32),
                ("act", C.c_int), ("a", C.c_float), ("b", C.c_float), ("state_length", _I), ("state", CausalStrides),
                ("ring", C.c_int32), ("skip", _I), ("has_skip", C.c_int32), ("in_place", C.c_int32),
                ("gradient", C.c_int32)]


class CausalArgs(Sized):
    _fields_ = [("size", _N), ("x", _P), ("f", _P), ("bias", _P), ("pre", _P), ("post", _P), ("residual", _P),
                ("y", _P), ("state_in", _P), ("state_out", _P), ("slots_in", _P), ("slots_out", _P),
                ("has_state", _P), ("positions", _P), ("accepted", _P), ("offsets", _P), ("ids", _P),
                ("workspace", _P), ("workspace_bytes", _N), ("stream", _P)]


class CausalGrads(Sized):
    _fields_ = [("size", _N), ("dy", _P), ("dstate_out", _P), ("dx", _P), ("dx_at", CausalStrides), ("df", _P),
                ("dbias", _P), ("dstate_in", _P)]


#: hk_causal_args and hk_causal_grads as bytes: packing 20 integers costs a fraction of setting 20 ctypes fields, and a
#: decode step is called for every token. The library only reads them.
ARGS = struct.Struct("@20Q")
GRADS = struct.Struct("@4Q3q3Q")

_text = [_P, C.c_char_p, _N, C.POINTER(_N)]
#: name -> (result, arguments), as in _abi.PROTOTYPES
PROTOTYPES = {
    "hk_causal_create": (None, [C.POINTER(_P), C.POINTER(CausalDesc), C.POINTER(Options)]),
    "hk_causal_destroy": (C.c_int, [_P]),
    "hk_causal_execute": (None, [_P, C.c_char_p]),
    "hk_causal_gradient": (None, [_P, C.c_char_p, C.c_char_p]),
    "hk_causal_workspace": (_N, [_P]),
    "hk_causal_print": (None, _text),
}
