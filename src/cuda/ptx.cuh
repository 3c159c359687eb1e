/* The Hopper instructions of the igemm kernels, one inline function each: mbarriers, bulk and im2col copies (TMA),
 * wgmma fences, register reallocation, cluster addresses. Addresses are 32-bit addresses of the shared window. */
#ifndef HK_CUDA_PTX_CUH
#define HK_CUDA_PTX_CUH
#include "cuda/types.cuh"

HK_DEV hk_cu_u32 smem_u32(const void *p) { return (hk_cu_u32)__cvta_generic_to_shared(p); }

HK_DEV void bar_init(hk_cu_u32 bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
HK_DEV void bar_init_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
HK_DEV void bar_expect(hk_cu_u32 bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
HK_DEV void bar_arrive(hk_cu_u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
/* Arrives at the same mbarrier in block `rank` of the cluster. It hands over the right to overwrite a stage, never
 * data, so the costly cluster-scope release is not needed. */
HK_DEV void bar_arrive_remote(hk_cu_u32 bar, int rank) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(bar), "r"(rank)
      : "memory");
}
HK_DEV void bar_wait(hk_cu_u32 bar, int parity) {
  asm volatile(
      "{\n\t.reg .pred done;\n\tWAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 0x989680;\n\t"
      "@done bra DONE;\n\tbra WAIT;\n\tDONE:\n\t}" ::"r"(bar), "r"(parity)
      : "memory");
}

HK_DEV void copy_bulk(hk_cu_u32 dst, const void *src, int bytes, hk_cu_u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}
HK_DEV void copy_bulk_pair(hk_cu_u32 dst, const void *src, int bytes, hk_cu_u32 bar, hk_cu_u16 mask) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
               "[%3], %4;" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar), "h"(mask)
               : "memory");
}

HK_DEV void prefetch_line(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory"); }

/* Loads 16 bytes that are not read again. */
HK_DEV uint4 load_once(const void *p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

/* Copies pixels to shared memory: coordinates innermost first, tap as offsets. mask 0: no multicast. */
HK_DEV void copy_tiled(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int c, int m, hk_cu_u16 mask) {
  if (mask)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%3, "
                 "%4}], [%2], %5;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(m), "h"(mask)
                 : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            dst),
        "l"(map), "r"(bar), "r"(c), "r"(m)
        : "memory");
}
HK_DEV void copy_im2col_1d(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int c, const int *at, int n,
                           const int *tap, hk_cu_u16 mask) {
  const hk_cu_u16 s = (hk_cu_u16)tap[2];
  if (mask)
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::"
                 "cluster [%0], [%1, "
                 "{%3, %4, %5}], [%2], {%6}, %7;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(n), "h"(s), "h"(mask)
                 : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2], {%6};" ::"r"(dst), "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(n), "h"(s)
        : "memory");
}
HK_DEV void copy_im2col_2d(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int c, const int *at, int n,
                           const int *tap, hk_cu_u16 mask) {
  const hk_cu_u16 s = (hk_cu_u16)tap[2], r = (hk_cu_u16)tap[1];
  if (mask)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::"
                 "cluster [%0], [%1, "
                 "{%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(at[1]), "r"(n), "h"(s), "h"(r), "h"(mask)
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
                 "%4, %5, %6}], "
                 "[%2], {%7, %8};" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(at[1]), "r"(n), "h"(s), "h"(r)
                 : "memory");
}
HK_DEV void copy_im2col_3d(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int c, const int *at, int n,
                           const int *tap, hk_cu_u16 mask) {
  const hk_cu_u16 s = (hk_cu_u16)tap[2], r = (hk_cu_u16)tap[1], t = (hk_cu_u16)tap[0];
  if (mask)
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::"
                 "cluster [%0], [%1, "
                 "{%3, %4, %5, %6, %7}], [%2], {%8, %9, %10}, %11;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(at[1]), "r"(at[0]), "r"(n), "h"(s), "h"(r), "h"(t),
                 "h"(mask)
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
                 "%4, %5, %6, "
                 "%7}], [%2], {%8, %9, %10};" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(at[1]), "r"(at[0]), "r"(n), "h"(s), "h"(r), "h"(t)
                 : "memory");
}
/* Copies a box of the residual to shared memory; TMA fills what is outside with zeros. */
HK_DEV void copy_in(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int a, int b, int c) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(dst),
      "l"(map), "r"(bar), "r"(a), "r"(b), "r"(c)
      : "memory");
}
/* Copies a box from shared memory to y, innermost coordinate first; TMA clips what is outside y. */
HK_DEV void copy_out(const hk_cu_tmap *map, hk_cu_u32 src, int a, int b, int c) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(src),
               "r"(a), "r"(b), "r"(c)
               : "memory");
}
/* The same for consecutive pixels of a y with gaps between rows, images or pixels: at, innermost first, is where they
 * start, and they go on behind the end of a row. */
HK_DEV void copy_out_pixels(const hk_cu_tmap *map, hk_cu_u32 src, int c, const int *at, int n) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5, %6}], "
               "[%1];" ::"l"(map),
               "r"(src), "r"(c), "r"(at[2]), "r"(at[1]), "r"(at[0]), "r"(n)
               : "memory");
}
HK_DEV void copy_out_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Waits until all but the latest n groups of this thread have been read from shared memory. */
#define copy_out_wait(n) asm volatile("cp.async.bulk.wait_group.read " #n ";" ::: "memory")
HK_DEV void copy_out_wait_but(int n) { /* a constant: 1, 3 or 7 */
  if (n == 1) copy_out_wait(1);
  else if (n == 3) copy_out_wait(3);
  else copy_out_wait(7);
}
/* Programmatic dependent launch: lets the next kernel in the stream start, if it was launched to wait for this one
 * itself. */
HK_DEV void pdl_trigger(void) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
/* Waits until earlier kernels of the stream are complete. Before it, nothing they write may be read and nothing they
 * read may be written. */
HK_DEV void pdl_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }
HK_DEV void prefetch_map(const hk_cu_tmap *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

HK_DEV void wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
HK_DEV void wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define wgmma_wait(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")

#define regs_shrink(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 " #n ";")
#define regs_grow(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 " #n ";")

/* Moves 8x8 matrices of 16-bit values between registers and shared memory; lane l addresses row l % 8 of matrix l /
 * 8. */
HK_DEV void matrix_put(int n, hk_cu_u32 at, const hk_cu_u32 *v) {
  if (n == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]),
                 "r"(v[2]), "r"(v[3])
                 : "memory");
  else if (n == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(v[0]), "r"(v[1]) : "memory");
  else asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(at), "r"(v[0]) : "memory");
}
/* The same transposed: a row in memory is a column of the matrix. */
HK_DEV void matrix_put_transposed(int n, hk_cu_u32 at, const hk_cu_u32 *v) {
  if (n == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]),
                 "r"(v[1]), "r"(v[2]), "r"(v[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(v[0]), "r"(v[1])
                 : "memory");
}
HK_DEV void matrix_get(int n, hk_cu_u32 at, hk_cu_u32 *v) {
  if (n == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
  else if (n == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1])
                 : "r"(at)
                 : "memory");
  else asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v[0]) : "r"(at) : "memory");
}

HK_DEV void fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
HK_DEV void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
HK_DEV void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
HK_DEV void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
HK_DEV int cluster_rank(void) {
  int r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
HK_DEV float load_remote1(hk_cu_u32 addr, int rank) {
  float v;
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %1, %2;\n\tld.shared::cluster.f32 %0, [remote];\n\t}"
      : "=f"(v)
      : "r"(addr), "r"(rank)
      : "memory");
  return v;
}
HK_DEV float4 load_remote(hk_cu_u32 addr, int rank) {
  float4 v;
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %4, %5;\n\t"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n\t}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(addr), "r"(rank)
      : "memory");
  return v;
}
/* Descriptor of a matrix with rows of 128 bytes and the 128-byte swizzle: groups of 8 rows are 1024 bytes apart. */
HK_DEV hk_cu_u64 wgmma_matrix(hk_cu_u32 addr) {
  return (hk_cu_u64)(addr >> 4 & 0x3fff) | (hk_cu_u64)1 << 16 | (hk_cu_u64)64 << 32 | (hk_cu_u64)1 << 62;
}
#endif
