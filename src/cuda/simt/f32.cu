/* SIMT kernels with f32 sums: hk_simt_f32_* for f32 operands, hk_simt_mixed_* for any other floats. See
 * simt.tmpl.cuh. */
#include "cuda/simt/simt.cuh"

#define SUM float
#define REAL float
#define PARAM float
#define IS_INT 0
#define LOAD_REAL load_f32
#define STORE store_f32
#define NAME(x) x##_f32
#include "cuda/passes/finish.tmpl.cuh"
#include "cuda/simt/slices.tmpl.cuh"

#define PLAIN(p, i, type) ((const float *)(p))[i]

#define TM 8
#define TN 8
#define RESIDENT 2
#define OPERAND PLAIN
#define VECTORS 1
#define TILE(x) x##_f32_128x128
#include "cuda/simt/simt.tmpl.cuh"

#define TM 8
#define TN 4
#define RESIDENT 2
#define OPERAND PLAIN
#define VECTORS 1
#define TILE(x) x##_f32_128x64
#include "cuda/simt/simt.tmpl.cuh"

#define TM 4
#define TN 4
#define RESIDENT 2
#define OPERAND PLAIN
#define VECTORS 1
#define TILE(x) x##_f32_64x64
#include "cuda/simt/simt.tmpl.cuh"

#define TM 8
#define TN 1
#define RESIDENT 2
#define OPERAND PLAIN
#define VECTORS 1
#define TILE(x) x##_f32_128x16
#include "cuda/simt/simt.tmpl.cuh"

#define TM 8
#define TN 8
#define RESIDENT 2
#define OPERAND load_f32
#define VECTORS 0
#define TILE(x) x##_mixed_128x128
#include "cuda/simt/simt.tmpl.cuh"

#define TM 4
#define TN 4
#define RESIDENT 2
#define OPERAND load_f32
#define VECTORS 0
#define TILE(x) x##_mixed_64x64
#include "cuda/simt/simt.tmpl.cuh"

#define TM 8
#define TN 1
#define RESIDENT 2
#define OPERAND load_f32
#define VECTORS 0
#define TILE(x) x##_mixed_128x16
#include "cuda/simt/simt.tmpl.cuh"
