/* libhankel-cuda.so.0: the table of the embedded fatbins, the library's only symbol. Not part of libhankel. */
#include "cuda/driver/images.h"

#include "hankel.h"

#define IMAGE(name, source, type) extern const unsigned char hk_fatbin_##name[];
#include "cuda/driver/images.inc"
#undef IMAGE
#define IMAGE(name, source, type) {#name, hk_fatbin_##name},

HK_API extern const hk_cu_code hk_cuda_images[];
const hk_cu_code hk_cuda_images[] = {{HK_VERSION_TEXT, 0},
#include "cuda/driver/images.inc"
                                     {0, 0}};
