/* Timing on the device: launches are captured on a separate stream, instantiated as a graph and replayed between two
 * events after one unmeasured replay. Neither launch overhead on the host nor work on the caller's streams is
 * measured. */
#include "cuda/cuda.h"

enum { NON_BLOCKING = 1, THREAD_LOCAL = 1 }; /* CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */

static hk_status record(const hk_cu_driver *cu, hk_status (*body)(void *, int32_t, void *), void *context,
                        int32_t repeats, hk_cu_stream stream, hk_cu_graph *graph) {
  hk_status s = hk_cu_check(cu->capture_begin(stream, THREAD_LOCAL), "capturing launches");
  if (s) return s;
  for (int32_t i = 0; i < repeats && !s; ++i) s = body(context, i, stream);
  const hk_status ended = hk_cu_check(cu->capture_end(stream, graph), "capturing launches");
  return s ? s : ended;
}

static hk_status replay(const hk_cu_driver *cu, hk_cu_exec exec, hk_cu_stream stream, float *ms) {
  hk_cu_event from = NULL, to = NULL;
  hk_status s = hk_cu_check(cu->event_create(&from, 0), "creating an event");
  if (!s) s = hk_cu_check(cu->event_create(&to, 0), "creating an event");
  if (!s) s = hk_cu_check(cu->graph_launch(exec, stream), "replaying launches");
  if (!s) s = hk_cu_check(cu->event_record(from, stream), "recording an event");
  if (!s) s = hk_cu_check(cu->graph_launch(exec, stream), "replaying launches");
  if (!s) s = hk_cu_check(cu->event_record(to, stream), "recording an event");
  if (!s) s = hk_cu_check(cu->event_sync(to), "waiting for the device");
  if (!s) s = hk_cu_check(cu->event_ms(ms, from, to), "reading events");
  if (from) cu->event_destroy(from);
  if (to) cu->event_destroy(to);
  return s;
}

hk_status hk_cu_time(hk_status (*body)(void *context, int32_t i, void *stream), void *context, int32_t repeats,
                     double *seconds) {
  const hk_cu_driver *cu = hk_cu();
  hk_cu_stream stream = NULL;
  hk_cu_graph graph = NULL;
  hk_cu_exec exec = NULL;
  float ms = 0;
  if (!cu) return HK_DEVICE;
  hk_status s = hk_cu_check(cu->ctx_sync(), "waiting for the device");
  if (!s) s = hk_cu_check(cu->stream_create(&stream, NON_BLOCKING), "creating a stream");
  if (!s) s = record(cu, body, context, repeats, stream, &graph);
  if (!s) s = hk_cu_check(cu->graph_instantiate(&exec, graph, 0), "instantiating a graph");
  if (!s) s = replay(cu, exec, stream, &ms);
  if (exec) cu->exec_destroy(exec);
  if (graph) cu->graph_destroy(graph);
  if (stream) cu->stream_destroy(stream);
  *seconds = (double)ms * 1e-3 / repeats;
  return s;
}
