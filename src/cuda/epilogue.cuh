/* The epilogue on the device, in registers: scale, bias, activation or gate, residual, user functions, conversion.
 *
 * The functions work on short runs of f32 sums that share one output pixel or one channel; the f64 and s32 versions
 * serve the direct kernel only. A build with HK_USER defined (NVRTC) calls the caller's function where act is
 * HK_CU_USER; HK_USER2 and HK_USER_STORE replace the last step and the store. */
#ifndef HK_CUDA_EPILOGUE_CUH
#define HK_CUDA_EPILOGUE_CUH
#include "cuda/types.cuh"



/* Output coordinates of one value: k counts over all groups; p holds the three spatial positions, outer first. */
typedef struct hk_cu_at {
  hk_cu_i64 n, k;
  int p[3];
} hk_cu_at;

#ifdef HK_USER
HK_DEV float hk_user(hk_cu_at at, float v, const void *user);
#endif
#ifdef HK_USER2
HK_DEV float hk_user2(hk_cu_at at, float v, const void *user);
#endif
#ifdef HK_USER_STORE
HK_DEV void hk_user_store(hk_cu_at at, float v, void *user);
#endif

HK_DEV float sigmoid_f32(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }

/* tanh with relative accuracy near zero: an odd polynomial below 0.25, where 1 - 2/(e+1) would cancel. */
HK_DEV float tanh_f32(float v) {
  const float u = fabsf(v), s = v * v;
  if (u < 0.25f) {
    float p = fmaf(s, 62.0f / 2835.0f, -17.0f / 315.0f);
    p = fmaf(s, p, 2.0f / 15.0f);
    p = fmaf(s, p, -1.0f / 3.0f);
    return fmaf(v * s, p, v);
  }
  if (!(u < 20.0f)) return v != v ? v : copysignf(1.0f, v);
  const float e = __expf(2.0f * u);
  return copysignf(1.0f - __fdividef(2.0f, e + 1.0f), v);
}

/* act is uniform over the launch, so each case has its own loop; n is a compile-time constant. NaN stays NaN. */
#define EACH(expr)                  \
  do {                              \
    _Pragma("unroll")               \
    for (int i = 0; i < n; ++i) {   \
      const float t = v[i];         \
      v[i] = (expr);                \
    }                               \
  } while (0)
HK_DEV void act_run(int n, int act, float a, float b, const float *slope, float *v) {
  switch (act) {
    case HK_CU_RELU: EACH(t <= 0.0f ? 0.0f : t); break;
    case HK_CU_CLIP:
    case HK_CU_HARDTANH: EACH(t < a ? a : t > b ? b : t); break;
    case HK_CU_LEAKY: EACH(t < 0.0f ? a * t : t); break;
    case HK_CU_PRELU: EACH(t < 0.0f ? slope[i] * t : t); break;
    case HK_CU_SIGMOID: EACH(sigmoid_f32(t)); break;
    case HK_CU_SILU: EACH(t == -INFINITY ? -0.0f : t * sigmoid_f32(t)); break;
    case HK_CU_TANH: EACH(tanh_f32(t)); break;
    case HK_CU_GELU: EACH(t == -INFINITY ? -0.0f : t * normcdff(t)); break;
    case HK_CU_GELU_TANH:
      EACH(t == -INFINITY ? -0.0f : t * sigmoid_f32(1.5957691216f * fmaf(0.044715f * t * t, t, t)));
      break;
    case HK_CU_HARDSWISH:
      EACH(t <= -3.0f ? 0.0f * (t == -INFINITY ? 0.0f : t) : t >= 3.0f ? t : t * (t + 3.0f) * (1.0f / 6.0f));
      break;
    case HK_CU_SOFTSIGN: EACH(fabsf(t) == INFINITY ? copysignf(1.0f, t) : __fdividef(t, 1.0f + fabsf(t))); break;
    default: break;
  }
}
#undef EACH

HK_DEV double act_f64(int act, double a, double b, double slope, double v) {
  switch (act) {
    case HK_CU_RELU: return v <= 0 ? 0 : v;
    case HK_CU_CLIP:
    case HK_CU_HARDTANH: return v < a ? a : v > b ? b : v;
    case HK_CU_LEAKY: return v < 0 ? a * v : v;
    case HK_CU_PRELU: return v < 0 ? slope * v : v;
    case HK_CU_SIGMOID: return 1 / (1 + exp(-v));
    case HK_CU_SILU: return v == -INFINITY ? -0.0 : v / (1 + exp(-v));
    case HK_CU_TANH: return tanh(v);
    case HK_CU_GELU: return v == -INFINITY ? -0.0 : 0.5 * v * erfc(-v * 0.70710678118654752440);
    case HK_CU_GELU_TANH:
      return v == -INFINITY ? -0.0 : 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    case HK_CU_HARDSWISH: return v <= -3 ? 0 : v >= 3 ? v : v * (v + 3) / 6;
    case HK_CU_SOFTSIGN: return fabs(v) == INFINITY ? copysign(1.0, v) : v / (1 + fabs(v));
    default: return v;
  }
}

/* Offset of channel k in y or the residual. With a gate, the channels of y are not grouped. */
HK_DEV hk_cu_i64 channel_offset(const hk_cu_geom *g, const hk_cu_view *s, int gate, hk_cu_i64 group, hk_cu_i64 k) {
  return gate ? s->channel * (group * g->kg + k) : s->group * group + s->channel * k;
}
HK_DEV hk_cu_i64 pixel_offset(const hk_cu_view *s, hk_cu_i64 n, const int *p) {
  return s->outer * n + s->at[0] * p[0] + s->at[1] * p[1] + s->at[2] * p[2];
}
#endif
