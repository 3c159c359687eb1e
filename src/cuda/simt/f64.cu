/* SIMT kernels with f64 sums, of any mixture of floats. See simt.tmpl.cuh. */
#include "cuda/simt/simt.cuh"

#define SUM double
#define REAL double
#define PARAM double
#define IS_INT 0
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_f64
#include "cuda/passes/finish.tmpl.cuh"
#include "cuda/simt/slices.tmpl.cuh"

#define TM 4
#define TN 4
#define RESIDENT 2
#define OPERAND load_f64
#define VECTORS 0
#define TILE(x) x##_f64_64x64
#include "cuda/simt/simt.tmpl.cuh"

#define TM 4
#define TN 1
#define RESIDENT 2
#define OPERAND load_f64
#define VECTORS 0
#define TILE(x) x##_f64_64x16
#include "cuda/simt/simt.tmpl.cuh"
