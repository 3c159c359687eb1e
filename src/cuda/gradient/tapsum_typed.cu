/* The tapsum kernels of one type: see lane.cuh, line.cuh, mma.cuh, stem.cuh, band.cuh. */
#include "cuda/instance.cuh"
#include "cuda/gradient/common.cuh"

#if defined HK_AS_f32
#define ELEMENT float
#define WIDEN(v) (v)
#elif defined HK_AS_bf16
#define ELEMENT hk_cu_u16
#define WIDEN(v) f32_from_bf16(v)
#else
#define ELEMENT hk_cu_u16
#define WIDEN(v) f32_from_f16(v)
#endif

#include "cuda/gradient/lane_rows.cuh"
#include "cuda/gradient/line_rows.cuh"

#if TYPE_BYTES == 2
#include "cuda/gradient/mma.cuh"
#define NT 2
#define STEM(name) NAMED(name, 2)
#include "cuda/gradient/stem.cuh"
#define NT 3
#define STEM(name) NAMED(name, 3)
#include "cuda/gradient/stem.cuh"
#define NT 4
#define STEM(name) NAMED(name, 4)
#include "cuda/gradient/stem.cuh"
#define RT 3
#define BAND(name) NAMED(name, 3)
#include "cuda/gradient/band.cuh"
#define RT 5
#define BAND(name) NAMED(name, 5)
#include "cuda/gradient/band.cuh"
#define RT 7
#define BAND(name) NAMED(name, 7)
#include "cuda/gradient/band.cuh"
#endif
