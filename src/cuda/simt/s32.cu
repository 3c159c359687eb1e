/* SIMT kernels with s32 sums of int8 operands, finished in f64, which represents them exactly. See simt.tmpl.cuh. */
#include "cuda/simt/simt.cuh"

#define SUM int
#define REAL double
#define PARAM float
#define IS_INT 1
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_s32
#include "cuda/passes/finish.tmpl.cuh"
#include "cuda/simt/slices.tmpl.cuh"

#define TM 8
#define TN 8
#define RESIDENT 2
#define OPERAND load_s32
#define VECTORS 0
#define TILE(x) x##_s32_128x128
#include "cuda/simt/simt.tmpl.cuh"

#define TM 4
#define TN 4
#define RESIDENT 2
#define OPERAND load_s32
#define VECTORS 0
#define TILE(x) x##_s32_64x64
#include "cuda/simt/simt.tmpl.cuh"

#define TM 8
#define TN 1
#define RESIDENT 2
#define OPERAND load_s32
#define VECTORS 0
#define TILE(x) x##_s32_128x16
#include "cuda/simt/simt.tmpl.cuh"
