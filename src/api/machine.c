/* What a program may ask about the machine it runs on. */
#include "core/core.h"

hk_status hk_machine_info(hk_machine *m) {
  if (!m) return hk_fail(HK_INVALID, "machine is NULL");
  if (m->size != sizeof *m)
    return hk_fail(HK_INVALID, "machine.size = %zu must be sizeof(hk_machine) = %zu", m->size, sizeof *m);
  hk_cpu_describe(m);
  return HK_OK;
}
