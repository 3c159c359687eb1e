/* FMA peak of scalar. */
#include "cpu/scalar/vec_scalar.h"
#define NAME hk_peak_scalar
#include "cpu/tmpl/peak.tmpl.h"
