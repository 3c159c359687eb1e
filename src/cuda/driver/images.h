/* What libhankel-cuda.so.0 exports: the device code, one fatbin per row of images.inc. libhankel opens it when a plan
 * first asks for a device (module.c), and takes it only where the version is its own. */
#ifndef HK_CUDA_IMAGES_H
#define HK_CUDA_IMAGES_H

typedef struct hk_cu_code {
  const char *name;
  const unsigned char *code;
} hk_cu_code;

/* The first entry has the version in the place of a name, the last one no name. */
#define HK_CU_CODE_SYMBOL "hk_cuda_images"

#endif
