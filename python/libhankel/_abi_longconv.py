"""hk_longconv of hankel.h, mirrored for ctypes. tests/python/test_abi.py compares it with the header."""
import ctypes as C

from ._abi import Options, Sized
from ._abi_causal import CausalStrides

_I, _P, _N = C.c_int64, C.c_void_p, C.c_size_t


class LongconvDesc(Sized):
    _fields_ = [("size", _N), ("x_type", C.c_int), ("f_type", C.c_int), ("y_type", C.c_int), ("n", _I), ("c", _I),
                ("length", _I), ("window", _I), ("x", CausalStrides), ("y", CausalStrides), ("pre", CausalStrides),
                ("post", CausalStrides), ("f_channel", _I), ("f_tap", _I), ("has_skip", C.c_int32),
                ("has_pre", C.c_int32), ("has_post", C.c_int32), ("gradient", C.c_int32)]


class LongconvArgs(Sized):
    _fields_ = [("size", _N), ("x", _P), ("f", _P), ("skip", _P), ("pre", _P), ("post", _P), ("y", _P),
                ("workspace", _P), ("workspace_bytes", _N), ("stream", _P)]


class LongconvGrads(Sized):
    _fields_ = [("size", _N), ("dy", _P), ("dx", _P), ("dpre", _P), ("dpost", _P), ("dx_at", CausalStrides),
                ("dpre_at", CausalStrides), ("dpost_at", CausalStrides), ("df", _P), ("dskip", _P)]


#: name -> (result, arguments), as in _abi.PROTOTYPES
PROTOTYPES = {
    "hk_longconv_create": (None, [C.POINTER(_P), C.POINTER(LongconvDesc), _P, _P, C.POINTER(Options)]),
    "hk_longconv_destroy": (C.c_int, [_P]),
    "hk_longconv_execute": (None, [_P, C.POINTER(LongconvArgs)]),
    "hk_longconv_gradient": (None, [_P, C.POINTER(LongconvArgs), C.POINTER(LongconvGrads)]),
    "hk_longconv_workspace": (_N, [_P]),
    "hk_longconv_print": (None, [_P, C.c_char_p, _N, C.POINTER(_N)]),
}
