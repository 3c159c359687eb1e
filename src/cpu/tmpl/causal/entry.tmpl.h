/* The kernel HK_NAME of causalc and causalt: their run(tile, types of x and y) once per pair of equal types, where
 * both are constants, and once for types that differ. */
static void run_f32(const hk_causal_tile *r) { run(r, (kinds){HK_F32, HK_F32}); }
static void run_f16(const hk_causal_tile *r) { run(r, (kinds){HK_F16, HK_F16}); }
static void run_bf16(const hk_causal_tile *r) { run(r, (kinds){HK_BF16, HK_BF16}); }
static void run_mixed(const hk_causal_tile *r) { run(r, (kinds){r->x_type, r->y_type}); }

void HK_NAME(const void *args) {
  const hk_causal_tile *r = args;
  if (r->x_type != r->y_type) run_mixed(r);
  else if (r->x_type == HK_F32) run_f32(r);
  else if (r->x_type == HK_F16) run_f16(r);
  else run_bf16(r);
}
