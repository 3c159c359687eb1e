/* What the handler reads of XLA's foreign function interface (xla/ffi/api/c_api.h, major version 0): structs that say
 * their own size and grow at their end. A call frame holds buffers (arguments, results) and attributes sorted by name.
 */
#ifndef HK_JAX_XLA_FFI_H
#define HK_JAX_XLA_FFI_H
#include <stddef.h>
#include <stdint.h>

typedef struct xla_extension { /* the start of every extension */
  size_t struct_size;
  int type;
  struct xla_extension *next;
} xla_extension;

enum { XLA_METADATA = 1 };                                 /* type of an extension */
enum { XLA_EXECUTE = 3 };                                  /* stage of a call */
enum { XLA_ATTR_SCALAR = 3, XLA_ATTR_STRING = 4 };         /* kinds of attributes */
enum { XLA_INVALID_ARGUMENT = 3, XLA_UNIMPLEMENTED = 12 }; /* codes of errors */

typedef struct xla_version {
  size_t struct_size;
  xla_extension *extension_start;
  int major, minor;
} xla_version;

typedef struct xla_metadata {
  size_t struct_size;
  xla_version version;
  uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
  xla_extension base;
  xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_buffer {
  size_t struct_size;
  xla_extension *extension_start;
  int type;
  void *data;
  int64_t rank;
  int64_t *dims;
} xla_buffer;

typedef struct xla_text { /* not ended by a zero byte */
  const char *at;
  size_t length;
} xla_text;

typedef struct xla_scalar {
  int type;
  void *value;
} xla_scalar;

typedef struct xla_buffers {
  size_t struct_size;
  xla_extension *extension_start;
  int64_t count;
  int *kinds;
  void **at; /* of xla_buffer */
} xla_buffers;

typedef struct xla_attributes {
  size_t struct_size;
  xla_extension *extension_start;
  int64_t count;
  int *kinds;
  xla_text **names;
  void **at;
} xla_attributes;

typedef struct xla_error xla_error;
typedef struct xla_context xla_context;

typedef struct xla_error_args {
  size_t struct_size;
  xla_extension *extension_start;
  const char *message;
  int code;
} xla_error_args;

typedef struct xla_destroy_args {
  size_t struct_size;
  xla_extension *extension_start;
  xla_error *error;
} xla_destroy_args;

typedef struct xla_schedule_args {
  size_t struct_size;
  xla_extension *extension_start;
  xla_context *context;
  void (*task)(void *data);
  void *data;
} xla_schedule_args;

typedef struct xla_api {
  size_t struct_size;
  xla_extension *extension_start;
  xla_version version;
  void *internal;
  xla_error *(*error_create)(xla_error_args *);
  void *error_message;
  void (*error_destroy)(xla_destroy_args *);
  void *handler_register, *stream_get, *type_register, *context_get, *state_set, *state_get, *allocate, *release;
  xla_error *(*schedule)(xla_schedule_args *); /* on XLA's threads; an error where there are none */
} xla_api;

typedef struct xla_frame {
  size_t struct_size;
  xla_extension *extension_start;
  const xla_api *api;
  xla_context *context;
  int stage;
  xla_buffers arguments, results;
  xla_attributes attributes;
} xla_frame;
#endif
