/* The kernel HK_NAME: selects the table of tiles by args->vectors and passes it to run(), which the family defines.
 * Define HK_ARGS (the family's argument struct) before, and HK_TILES(vectors) where run() takes several tables. */
#ifndef HK_TILES
#define HK_TILES(n) HK_PASTE4(tiles_, n, _, rows)
#endif
void HK_NAME(const void *args) {
  const HK_ARGS *r = args;
  switch (r->vectors) {
#if HK_ROWS_1 > 0
    case 1: run(r, HK_TILES(1), HK_ROWS_1); return;
#endif
#if HK_ROWS_2 > 0
    case 2: run(r, HK_TILES(2), HK_ROWS_2); return;
#endif
#if HK_ROWS_3 > 0
    case 3: run(r, HK_TILES(3), HK_ROWS_3); return;
#endif
#if HK_ROWS_4 > 0
    case 4: run(r, HK_TILES(4), HK_ROWS_4); return;
#endif
    default: return;
  }
}
