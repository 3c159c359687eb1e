/* igemm's loop over rows: tiles of nearly equal size, so a count just above a multiple costs no almost empty tile. */
static void run(const hk_igemm_args *r, const tile_fn *tiles, int64_t most) {
  int64_t left = r->count, m = 0;
  for (int64_t n = hk_ceil_div(left, most); n > 0; n--) {
    const int64_t rows = hk_ceil_div(left, n);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}
