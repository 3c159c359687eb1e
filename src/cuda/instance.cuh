/* The operand type of a source that is compiled once per type; driver/images.inc names it, and the build defines
 * HK_AS_<type>.
 *   TYPE                   number of the type in params.h
 *   TYPE_BYTES, MMA_TYPE   its size, and its name in mma.sync
 *   PARTS                  products per operand pair: 2 for f32 split into two tf32 parts
 *   TYPED(a), NAMED(a, b)  a_<type> and a_<type>_b
 *   INSTANCE(macro, ...)   macro(...) with its arguments expanded first, for macros that paste them */
#ifndef HK_CUDA_INSTANCE_CUH
#define HK_CUDA_INSTANCE_CUH
#define INSTANCE(macro, ...) macro(__VA_ARGS__)
#if defined HK_AS_split
#define PARTS 2
#else
#define PARTS 1
#endif
#if defined HK_AS_bf16
#define TYPE HK_CU_BF16
#define TYPE_BYTES 2
#define MMA_TYPE "bf16"
#define TYPED(a) a##_bf16
#define NAMED(a, b) a##_bf16_##b
#elif defined HK_AS_f16
#define TYPE HK_CU_F16
#define TYPE_BYTES 2
#define MMA_TYPE "f16"
#define TYPED(a) a##_f16
#define NAMED(a, b) a##_f16_##b
#elif defined HK_AS_f8
#define TYPE HK_CU_F8
#define TYPE_BYTES 1
#define NAMED(a, b) a##_f8_##b
#elif defined HK_AS_f32
#define TYPE HK_CU_F32
#define TYPE_BYTES 4
#define NAMED(a, b) a##_f32_##b
#elif defined HK_AS_tf32
#define TYPE HK_CU_F32
#define TYPE_BYTES 4
#define NAMED(a, b) a##_tf32_##b
#elif defined HK_AS_split
#define TYPE HK_CU_F32
#define TYPE_BYTES 4
#define NAMED(a, b) a##_split_##b
#endif
#endif
