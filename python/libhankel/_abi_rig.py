"""The rig of hankel_nam.h, mirrored for ctypes. tests/python/test_abi.py compares it with the header."""
import ctypes as C

from ._abi import Sized
from ._abi_stream import NamFacts, NamOptions

AMP, CABINET = 0, 1
LEVEL = {"raw": 0, "normalized": 1, "calibrated": 2}


class RigOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("sample_rate", C.c_double), ("channels", C.c_int32),
                ("fade_seconds", C.c_double), ("isa", C.c_int)]


class RigPartFacts(Sized):
    _fields_ = [("size", C.c_size_t), ("slot", C.c_int), ("frames", C.c_int64), ("latency", C.c_int64),
                ("bytes", C.c_size_t), ("amp", NamFacts)]


class RigControls(Sized):
    _fields_ = [("size", C.c_size_t), ("input_db", C.c_double), ("output_db", C.c_double), ("gate_db", C.c_double),
                ("bypass", C.c_int32), ("resize", C.c_int32), ("model_size", C.c_double), ("level", C.c_int),
                ("interface_dbu", C.c_double)]


_P, _PP = C.c_void_p, C.POINTER(C.c_void_p)
#: of libhankel-nam; name -> (result, arguments), as in _abi.PROTOTYPES
PROTOTYPES = {
    "hk_rig_create": (None, [_PP, C.POINTER(RigOptions)]),
    "hk_rig_free": (C.c_int, [_P]),
    "hk_rig_load_amp": (None, [_PP, _P, C.c_char_p, C.POINTER(NamOptions)]),
    "hk_rig_load_cabinet": (None, [_PP, _P, _P, C.c_int64, C.c_int32, C.c_double]),
    "hk_rig_part_free": (C.c_int, [_P]),
    "hk_rig_part_info": (None, [_P, C.POINTER(RigPartFacts)]),
    "hk_rig_set": (C.c_int, [_P, C.c_int, _P]),
    "hk_rig_retired": (_P, [_P]),
    "hk_rig_process": (None, [_P, C.POINTER(RigControls), _PP, C.c_int64, _PP]),
    "hk_rig_reset": (C.c_int, [_P]),
    "hk_rig_latency": (C.c_int64, [_P]),
}
