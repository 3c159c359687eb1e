/* FMA peak of neon. */
#include "cpu/arm/vec_neon.h"
#define NAME hk_peak_neon
#include "cpu/tmpl/peak.tmpl.h"
