/* What a program may ask about the machine it runs on. */
#include "core/core.h"

hk_status hk_machine_info(hk_machine *m) {
  hk_machine here = {.size = sizeof here};
  hk_cpu_describe(&here);
  return hk_give(m, &here, sizeof here, "machine");
}
