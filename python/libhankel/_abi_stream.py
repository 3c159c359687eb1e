"""The streams of hankel.h and the amp models of hankel_nam.h, mirrored for ctypes. tests/python/test_abi.py compares
both with the headers."""
import ctypes as C

from ._abi import Epilogue, Options, RawProblem, Sized, Weights

STEP_KIND = {"conv": 1, "map": 2, "scale": 3, "lstm": 4, "fir": 5}
_floats = C.POINTER(C.c_float)


class StepAct(C.Structure):
    _fields_ = [("act", C.c_int), ("a", C.c_float), ("b", C.c_float), ("slope_lo", C.c_float), ("slope_hi", C.c_float),
                ("slopes", _floats), ("rational", C.c_int32)]


class Step(Sized):
    _fields_ = [("size", C.c_size_t), ("kind", C.c_int), ("x", C.c_int32), ("k", C.c_int64), ("window", C.c_int64),
                ("dilation", C.c_int64), ("stride", C.c_int64), ("groups", C.c_int64), ("f", _floats),
                ("bias", _floats), ("mix", C.c_int32), ("mix_groups", C.c_int64), ("mix_f", _floats),
                ("x2", C.c_int32), ("act", StepAct), ("act2", StepAct), ("gate", C.c_int), ("residual", C.c_int),
                ("add", C.c_int32), ("beta", C.c_float), ("h0", _floats), ("c0", _floats)]


class ChainDesc(Sized):
    _fields_ = [("size", C.c_size_t), ("channels", C.c_int64), ("max_block", C.c_int64), ("steps", C.POINTER(Step)),
                ("count", C.c_int32), ("output", C.c_int32), ("layout", C.c_int), ("x_channel", C.c_int64),
                ("x_time", C.c_int64), ("y_channel", C.c_int64), ("y_time", C.c_int64), ("isa", C.c_int)]


class ChainFacts(Sized):
    _fields_ = [("size", C.c_size_t), ("x_channels", C.c_int64), ("y_channels", C.c_int64), ("max_block", C.c_int64),
                ("max_out", C.c_int64), ("receptive_field", C.c_int64), ("recurrent", C.c_int32), ("flops", C.c_double),
                ("chain_bytes", C.c_size_t), ("stream_bytes", C.c_size_t), ("state_bytes", C.c_size_t),
                ("isa", C.c_char_p)]


class NamOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("rational_tanh", C.c_int32), ("isa", C.c_int),
                ("film_blended_only", C.c_int32)]


class NamFacts(Sized):
    _fields_ = [("size", C.c_size_t), ("architecture", C.c_char_p), ("version", C.c_char_p), ("name", C.c_char_p),
                ("modeled_by", C.c_char_p), ("gear", C.c_char_p), ("layers", C.c_char_p), ("sample_rate", C.c_double),
                ("in_channels", C.c_int32), ("out_channels", C.c_int32), ("sizes", C.c_int32), ("at_size", C.c_int32),
                ("has_loudness", C.c_int32), ("has_input_level", C.c_int32), ("has_output_level", C.c_int32),
                ("loudness", C.c_double), ("input_level_dbu", C.c_double), ("output_level_dbu", C.c_double),
                ("receptive_field", C.c_int64), ("recurrent", C.c_int32), ("flops", C.c_double), ("bytes", C.c_size_t),
                ("isa", C.c_char_p)]


_P, _N, _I = C.c_void_p, C.c_size_t, C.c_int64
#: name -> (result, arguments), as in _abi.PROTOTYPES
PROTOTYPES = {
    "hk_chain_create": (None, [C.POINTER(_P), C.POINTER(ChainDesc), _P, _N]),
    "hk_chain_create_conv": (None, [C.POINTER(_P), C.POINTER(RawProblem), C.POINTER(Epilogue), C.POINTER(Options),
                                    C.POINTER(Weights)]),
    "hk_chain_destroy": (C.c_int, [_P]),
    "hk_chain_info": (None, [_P, C.POINTER(ChainFacts)]),
    "hk_stream_create": (None, [C.POINTER(_P), _P, _P, _N]),
    "hk_stream_destroy": (C.c_int, [_P]),
    "hk_stream_process": (None, [_P, _P, _I, _P, C.POINTER(_I)]),
    "hk_stream_reset": (None, [_P]),
    "hk_stream_prewarm": (None, [_P, _I]),
    "hk_stream_save": (None, [_P, _P, _N]),
    "hk_stream_restore": (None, [_P, _P, _N]),
}
#: of libhankel-nam
NAM_PROTOTYPES = {
    "hk_nam_load_file": (None, [C.POINTER(_P), C.c_char_p, C.POINTER(NamOptions)]),
    "hk_nam_load_memory": (None, [C.POINTER(_P), C.c_char_p, _N, C.POINTER(NamOptions)]),
    "hk_nam_free": (C.c_int, [_P]),
    "hk_nam_reset": (None, [_P]),
    "hk_nam_process": (None, [_P, _P, _I, _P]),
    "hk_nam_process_double": (None, [_P, _P, _I, _P]),
    "hk_nam_set_size": (None, [_P, C.c_double]),
    "hk_nam_info": (None, [_P, C.POINTER(NamFacts)]),
    "hk_nam_last_error": (C.c_char_p, []),
}
