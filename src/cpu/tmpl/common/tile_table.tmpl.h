/* The table HK_TABLE<vectors>_rows of the functions HK_KIND<rows>x<vectors>, of type HK_FN. */
static const HK_FN HK_PASTE4(HK_TABLE, HK_NV, _, rows)[] = {
#if HK_ROWS >= 1
  HK_PASTE4(HK_KIND, 1, x, HK_NV),
#endif
#if HK_ROWS >= 2
  HK_PASTE4(HK_KIND, 2, x, HK_NV),
#endif
#if HK_ROWS >= 3
  HK_PASTE4(HK_KIND, 3, x, HK_NV),
#endif
#if HK_ROWS >= 4
  HK_PASTE4(HK_KIND, 4, x, HK_NV),
#endif
#if HK_ROWS >= 5
  HK_PASTE4(HK_KIND, 5, x, HK_NV),
#endif
#if HK_ROWS >= 6
  HK_PASTE4(HK_KIND, 6, x, HK_NV),
#endif
#if HK_ROWS >= 7
  HK_PASTE4(HK_KIND, 7, x, HK_NV),
#endif
#if HK_ROWS >= 8
  HK_PASTE4(HK_KIND, 8, x, HK_NV),
#endif
#if HK_ROWS >= 9
  HK_PASTE4(HK_KIND, 9, x, HK_NV),
#endif
#if HK_ROWS >= 10
  HK_PASTE4(HK_KIND, 10, x, HK_NV),
#endif
#if HK_ROWS >= 11
  HK_PASTE4(HK_KIND, 11, x, HK_NV),
#endif
#if HK_ROWS >= 12
  HK_PASTE4(HK_KIND, 12, x, HK_NV),
#endif
};
