/* FMA peak of avx512. */
#include "cpu/x86/vec_avx512.h"
#define NAME hk_peak_avx512
#include "cpu/tmpl/peak.tmpl.h"
