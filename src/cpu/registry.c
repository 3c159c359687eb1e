/* The table of the kernels of this build, from kernels.inc. */
#include "cpu/ukernel.h"

const hk_kernel hk_kernels[] = {
#define HK_KERNEL_NEEDS(feature, name, family, isa, x, f, mr, nr) \
  {#name, HK_FAMILY_##family, HK_ISA_##isa, HK_##x, HK_##f, mr, nr, name, HK_FEATURE_##feature},
#define HK_KERNEL(name, family, isa, x, f, mr, nr) HK_KERNEL_NEEDS(NONE, name, family, isa, x, f, mr, nr)
#include "cpu/kernels.inc"
#undef HK_KERNEL
#undef HK_KERNEL_NEEDS
};
const int32_t hk_kernel_count = HK_COUNT(hk_kernels);

bool hk_kernel_runs(const hk_kernel *kernel, hk_isa isa) {
  return kernel->isa <= isa && hk_cpu_has(kernel->isa) && hk_cpu_has_feature(kernel->needs);
}

const hk_kernel *hk_kernel_best(hk_family family, hk_isa isa) {
  const hk_kernel *best = NULL;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (k->family == family && hk_kernel_runs(k, isa) && (!best || k->isa > best->isa)) best = k;
  }
  return best;
}

const hk_kernel *hk_kernel_convert(hk_type from, hk_type to, hk_isa isa) {
  const hk_kernel *best = NULL;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (k->family == HK_FAMILY_CONVERT && k->x_type == from && k->f_type == to && hk_kernel_runs(k, isa) &&
        (!best || k->isa > best->isa))
      best = k;
  }
  return best;
}
