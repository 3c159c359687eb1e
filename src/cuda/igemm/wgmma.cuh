/* wgmma for every tile width of the kernels: acc[m64][bn] (+)= A * B, both operands K-major in shared memory, one
 * 32-byte step of k. The asm text must spell out each operand: TEN, TWO.. spell runs of them. */
#ifndef HK_CUDA_WGMMA_CUH
#define HK_CUDA_WGMMA_CUH
#include "cuda/ptx.cuh"

#define T0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9"
#define TEN(t) ",%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9"
#define TWO(t) ",%" #t "0,%" #t "1"
#define FOUR(t) TWO(t) ",%" #t "2,%" #t "3"
#define SIX(t) FOUR(t) ",%" #t "4,%" #t "5"
#define EIGHT(t) SIX(t) ",%" #t "6,%" #t "7"
#define R(i) "+f"(d[i])
#define O0 R(0), R(1), R(2), R(3), R(4), R(5), R(6), R(7), R(8), R(9)
#define OTWO(t) , R(t##0), R(t##1)
#define OFOUR(t) OTWO(t), R(t##2), R(t##3)
#define OSIX(t) OFOUR(t), R(t##4), R(t##5)
#define OEIGHT(t) OSIX(t), R(t##6), R(t##7)
#define OTEN(t) OEIGHT(t), R(t##8), R(t##9)

#define T8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define O8 R(0), R(1), R(2), R(3), R(4), R(5), R(6), R(7)
#define T32 T0 TEN(1) TEN(2) TWO(3)
#define O32 O0 OTEN(1) OTEN(2) OTWO(3)
#define T40 T0 TEN(1) TEN(2) TEN(3)
#define O40 O0 OTEN(1) OTEN(2) OTEN(3)
#define T48 T40 EIGHT(4)
#define O48 O40 OEIGHT(4)
#define T50 T40 TEN(4)
#define O50 O40 OTEN(4)
#define T52 T50 TWO(5)
#define O52 O50 OTWO(5)
#define T64 T50 TEN(5) FOUR(6)
#define O64 O50 OTEN(5) OFOUR(6)
#define T72 T50 TEN(5) TEN(6) TWO(7)
#define O72 O50 OTEN(5) OTEN(6) OTWO(7)
#define T80 T50 TEN(5) TEN(6) TEN(7)
#define O80 O50 OTEN(5) OTEN(6) OTEN(7)
#define T96 T80 TEN(8) SIX(9)
#define O96 O80 OTEN(8) OSIX(9)
#define T100 T80 TEN(8) TEN(9)
#define O100 O80 OTEN(8) OTEN(9)
#define T104 T100 FOUR(10)
#define O104 O100 OFOUR(10)
#define T128 T100 TEN(10) TEN(11) EIGHT(12)
#define O128 O100 OTEN(10) OTEN(11) OEIGHT(12)

/* regs = n / 2 accumulators; ia, ib, ip are the indices of the operands after them. */
#define WGMMA(kind, shape, tail, n, regs, ia, ib, ip)                                                              \
  HK_DEV void wgmma_##kind##_##n(float *d, hk_cu_u64 a, hk_cu_u64 b, int keep) {                                   \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #ip ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n shape \
                 " {" T##regs "}, %" #ia ", %" #ib ", p, 1, 1" tail ";\n\t}"                                       \
                 : O##regs                                                                                         \
                 : "l"(a), "l"(b), "r"(keep));                                                                     \
  }
#define WGMMA_KINDS(n, regs, ia, ib, ip)                              \
  WGMMA(bf16, "k16.f32.bf16.bf16", ", 0, 0", n, regs, ia, ib, ip)     \
  WGMMA(f16, "k16.f32.f16.f16", ", 0, 0", n, regs, ia, ib, ip)        \
  WGMMA(tf32, "k8.f32.tf32.tf32", "", n, regs, ia, ib, ip)            \
  WGMMA(f8, "k32.f32.e4m3.e4m3", "", n, regs, ia, ib, ip)
WGMMA_KINDS(16, 8, 8, 9, 10)
WGMMA_KINDS(64, 32, 32, 33, 34)
WGMMA_KINDS(80, 40, 40, 41, 42)
WGMMA_KINDS(96, 48, 48, 49, 50)
WGMMA_KINDS(104, 52, 52, 53, 54)
WGMMA_KINDS(128, 64, 64, 65, 66)
WGMMA_KINDS(144, 72, 72, 73, 74)
WGMMA_KINDS(160, 80, 80, 81, 82)
WGMMA_KINDS(192, 96, 96, 97, 98)
WGMMA_KINDS(208, 104, 104, 105, 106)
WGMMA_KINDS(256, 128, 128, 129, 130)

/* tf32 with A in registers: four words per lane. */
#define WGMMA_SPLIT(n, regs, i0, i1, i2, i3, ib, ip)                                                                  \
  HK_DEV void wgmma_split_##n(float *d, const hk_cu_u32 *a, hk_cu_u64 b, int keep) {                                 \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #ip ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n          \
                 "k8.f32.tf32.tf32 {" T##regs "}, {%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}, %" #ib ", p, 1, 1;\n\t}"    \
                 : O##regs                                                                                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));                                   \
  }
WGMMA_SPLIT(64, 32, 32, 33, 34, 35, 36, 37)
WGMMA_SPLIT(128, 64, 64, 65, 66, 67, 68, 69)
HK_DEV void wgmma_split_step(int bn, float *d, const hk_cu_u32 *a, hk_cu_u64 b, int keep) {
  if (bn == 64) wgmma_split_64(d, a, b, keep);
  else wgmma_split_128(d, a, b, keep);
}
HK_DEV hk_cu_u32 tf32_bits(float v) {
  hk_cu_u32 u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(v));
  return u;
}

/* type and bn are compile-time constants at every call. */
#define WGMMA_PICK(n)                                                \
  case n:                                                            \
    if (type == HK_CU_BF16) wgmma_bf16_##n(d, a, b, keep);           \
    else if (type == HK_CU_F16) wgmma_f16_##n(d, a, b, keep);        \
    else if (type == HK_CU_F32) wgmma_tf32_##n(d, a, b, keep);       \
    else wgmma_f8_##n(d, a, b, keep);                                \
    break;
HK_DEV void wgmma_step(int type, int bn, float *d, hk_cu_u64 a, hk_cu_u64 b, int keep) {
  switch (bn) {
    WGMMA_PICK(16) WGMMA_PICK(64) WGMMA_PICK(80) WGMMA_PICK(96) WGMMA_PICK(104) WGMMA_PICK(128) WGMMA_PICK(144)
    WGMMA_PICK(160) WGMMA_PICK(192) WGMMA_PICK(208) WGMMA_PICK(256)
    default: break;
  }
}
#endif
