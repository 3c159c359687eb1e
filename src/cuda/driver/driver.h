/* The CUDA driver, loaded at run time. Only the entries that hankel calls are declared, so no toolkit header is
 * needed to build. Every entry returns 0 on success. */
#ifndef HK_CUDA_DRIVER_H
#define HK_CUDA_DRIVER_H
#include "core/core.h"

typedef int hk_cu_result;
typedef int hk_cu_dev;
typedef unsigned long long hk_cu_ptr;
typedef struct hk_cu_ctx_st *hk_cu_ctx;
typedef struct hk_cu_lib_st *hk_cu_lib;
typedef struct hk_cu_kernel_st *hk_cu_kernel;
typedef struct hk_cu_stream_st *hk_cu_stream;
typedef struct hk_cu_event_st *hk_cu_event;
typedef struct hk_cu_graph_st *hk_cu_graph;
typedef struct hk_cu_exec_st *hk_cu_exec;

typedef struct hk_cu_attribute {
  int id, pad;
  union { char bytes[64]; struct { unsigned x, y, z; } cluster; int allowed; } value;
} hk_cu_attribute;
typedef struct hk_cu_config {
  unsigned grid[3], block[3], shared_bytes;
  hk_cu_stream stream;
  hk_cu_attribute *attributes;
  unsigned attribute_count;
} hk_cu_config;

#define HK_CU_ENTRIES(ENTRY)                                                                                          \
  ENTRY(init, "cuInit", (unsigned flags))                                                                             \
  ENTRY(device_get, "cuDeviceGet", (hk_cu_dev *device, int ordinal))                                                  \
  ENTRY(device_name, "cuDeviceGetName", (char *name, int size, hk_cu_dev device))                                     \
  ENTRY(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, hk_cu_dev device))                      \
  ENTRY(driver_version, "cuDriverGetVersion", (int *version))                                                         \
  ENTRY(ctx_current, "cuCtxGetCurrent", (hk_cu_ctx *ctx))                                                             \
  ENTRY(ctx_set, "cuCtxSetCurrent", (hk_cu_ctx ctx))                                                                  \
  ENTRY(ctx_device, "cuCtxGetDevice", (hk_cu_dev *device))                                                            \
  ENTRY(ctx_sync, "cuCtxSynchronize", (void))                                                                         \
  ENTRY(primary_retain, "cuDevicePrimaryCtxRetain", (hk_cu_ctx *ctx, hk_cu_dev device))                               \
  ENTRY(alloc, "cuMemAlloc_v2", (hk_cu_ptr *p, size_t bytes))                                                         \
  ENTRY(free, "cuMemFree_v2", (hk_cu_ptr p))                                                                          \
  ENTRY(copy, "cuMemcpy", (hk_cu_ptr dst, hk_cu_ptr src, size_t bytes))                                               \
  ENTRY(stream_sync, "cuStreamSynchronize", (hk_cu_stream stream))                                                    \
  ENTRY(stream_create, "cuStreamCreate", (hk_cu_stream *stream, unsigned flags))                                      \
  ENTRY(stream_destroy, "cuStreamDestroy_v2", (hk_cu_stream stream))                                                  \
  ENTRY(capture_begin, "cuStreamBeginCapture_v2", (hk_cu_stream stream, int mode))                                    \
  ENTRY(capture_end, "cuStreamEndCapture", (hk_cu_stream stream, hk_cu_graph *graph))                                 \
  ENTRY(graph_instantiate, "cuGraphInstantiateWithFlags",                                                             \
        (hk_cu_exec *exec, hk_cu_graph graph, unsigned long long flags))                                              \
  ENTRY(graph_launch, "cuGraphLaunch", (hk_cu_exec exec, hk_cu_stream stream))                                        \
  ENTRY(graph_destroy, "cuGraphDestroy", (hk_cu_graph graph))                                                         \
  ENTRY(exec_destroy, "cuGraphExecDestroy", (hk_cu_exec exec))                                                        \
  ENTRY(event_create, "cuEventCreate", (hk_cu_event *event, unsigned flags))                                          \
  ENTRY(event_record, "cuEventRecord", (hk_cu_event event, hk_cu_stream stream))                                      \
  ENTRY(event_sync, "cuEventSynchronize", (hk_cu_event event))                                                        \
  ENTRY(event_ms, "cuEventElapsedTime", (float *ms, hk_cu_event start, hk_cu_event end))                              \
  ENTRY(event_destroy, "cuEventDestroy_v2", (hk_cu_event event))                                                      \
  ENTRY(lib_load, "cuLibraryLoadData",                                                                                \
        (hk_cu_lib *lib, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options,             \
         void **option_values, unsigned option_count))                                                                \
  ENTRY(lib_unload, "cuLibraryUnload", (hk_cu_lib lib))                                                               \
  ENTRY(lib_kernel, "cuLibraryGetKernel", (hk_cu_kernel *kernel, hk_cu_lib lib, const char *name))                    \
  ENTRY(kernel_get, "cuKernelGetAttribute", (int *value, int attribute, hk_cu_kernel kernel, hk_cu_dev device))       \
  ENTRY(kernel_set, "cuKernelSetAttribute", (int attribute, int value, hk_cu_kernel kernel, hk_cu_dev device))        \
  ENTRY(kernel_function, "cuKernelGetFunction", (void **function, hk_cu_kernel kernel))                               \
  ENTRY(launch, "cuLaunchKernelEx", (const hk_cu_config *config, void *function, void **params, void **extra))        \
  ENTRY(max_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                    \
        (int *blocks, void *function, int threads, size_t shared_bytes))                                              \
  ENTRY(max_clusters, "cuOccupancyMaxActiveClusters", (int *clusters, void *function, const hk_cu_config *config))    \
  ENTRY(map_im2col, "cuTensorMapEncodeIm2col",                                                                        \
        (void *map, int type, unsigned rank, void *base, const uint64_t *dims, const uint64_t *strides,               \
         const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *steps,               \
         int interleave, int swizzle, int promotion, int fill))                                                       \
  ENTRY(map_tiled, "cuTensorMapEncodeTiled",                                                                          \
        (void *map, int type, unsigned rank, void *base, const uint64_t *dims, const uint64_t *strides,               \
         const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill))           \
  ENTRY(map_replace, "cuTensorMapReplaceAddress", (void *map, void *base))                                            \
  ENTRY(error_name, "cuGetErrorName", (hk_cu_result error, const char **name))

#define HK_CU_MEMBER(name, symbol, args) hk_cu_result (*name) args;
typedef struct hk_cu_driver {
  HK_CU_ENTRIES(HK_CU_MEMBER)
} hk_cu_driver;

typedef struct hk_cu_device {
  hk_cu_dev device;
  char name[64];
  int major, minor, processors, l2_bytes, shared_bytes, driver;
  int clock_khz, memory_khz, bus_bits;
} hk_cu_device;

/* driver.c. hk_cu() loads the driver once; it returns NULL with hk_last_error set when there is none. hk_cu_here()
 * also makes a context current (the caller's, otherwise the primary one of device HANKEL_CUDA_DEVICE or 0) and
 * describes its device. Both may be called from any thread. */
const hk_cu_driver *hk_cu(void);
hk_status hk_cu_here(hk_cu_device *device);
/* The device's number by HANKEL_CUDA_DEVICE: 0 when it is absent or empty, refused by name when it is no number. */
hk_status hk_cu_device_wanted(int *number);
/* Returns HK_OK, or HK_DEVICE with the driver's name of the error. */
hk_status hk_cu_check(hk_cu_result result, const char *doing);

/* module.c: finds a kernel of the embedded fatbins by name. shared_bytes: dynamic shared memory that it may use. */
hk_status hk_cu_kernel_find(const char *image, const char *name, int shared_bytes, hk_cu_kernel *kernel);
/* Whether `blocks` blocks fill at least 90 % of the device's block slots. */
hk_status hk_cu_kernel_fills(hk_cu_kernel kernel, int64_t blocks, int threads, int shared_bytes, bool *fills);
/* Launches blocks x 1 x 1 blocks of threads x 1 x 1, in clusters of `cluster` blocks along x. */
hk_status hk_cu_kernel_run(hk_cu_kernel kernel, int64_t blocks, int threads, int cluster, int shared_bytes,
                           void *stream, void *params);
/* The same with programmatic dependent launch: the kernel may start while the previous one still runs, and waits for
 * its results on the device (pdl_wait). */
hk_status hk_cu_kernel_run_pdl(hk_cu_kernel kernel, int64_t blocks, int threads, int cluster, int shared_bytes,
                               void *stream, void *params);
#endif
