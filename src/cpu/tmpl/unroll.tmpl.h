/* HK_UNROLL before a loop of constant length: unrolled fully by gcc and by clang (clang 14 ignores gcc's pragma).
 * HK_ROLLED before a loop whose body already fills the registers: clang would run two turns at once and spill. */
#ifndef HK_UNROLL
#if defined(__clang__)
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#define HK_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define HK_UNROLL _Pragma("GCC unroll 32")
#define HK_ROLLED _Pragma("GCC unroll 1")
#endif
#define HK_PASTE4_(a, b, c, d) a##b##c##d
#define HK_PASTE4(a, b, c, d) HK_PASTE4_(a, b, c, d)
#endif
