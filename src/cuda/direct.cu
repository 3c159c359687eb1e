/* The general kernels: hk_direct_f32, hk_direct_f64, hk_direct_s32, by accumulator type, and hk_direct_staged. See direct.tmpl.cuh. s32 sums are
 * finished in f64, which holds them exactly. */
#include "staged.cuh"

#define SUM float
#define REAL float
#define PARAM float
#define IS_INT 0
#define LOAD load_f32
#define LOAD_REAL load_f32
#define STORE store_f32
#define NAME(x) x##_f32
#include "direct.tmpl.cuh"

#define SUM double
#define REAL double
#define PARAM double
#define IS_INT 0
#define LOAD load_f64
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_f64
#include "direct.tmpl.cuh"

#define SUM int
#define REAL double
#define PARAM float
#define IS_INT 1
#define LOAD load_s32
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_s32
#include "direct.tmpl.cuh"
