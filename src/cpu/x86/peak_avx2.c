/* FMA peak of avx2. */
#include "cpu/x86/vec_avx2.h"
#define NAME hk_peak_avx2
#include "cpu/tmpl/peak.tmpl.h"
