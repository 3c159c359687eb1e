/* HK_UNROLL before a loop of constant length: unrolls it fully under gcc and clang (clang 14 ignores gcc's pragma).
 * HK_ROLLED before a loop whose body already fills the registers: clang would unroll it by two and spill. */
#ifndef HK_UNROLL
#if defined(__clang__)
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#define HK_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define HK_UNROLL _Pragma("GCC unroll 32")
#define HK_ROLLED _Pragma("GCC unroll 1")
#endif
/* Keeps a loaded vector in its register; gcc would otherwise fold the load into each FMA. */
#if defined(__x86_64__)
#define HK_PIN(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define HK_PIN(v) __asm__("" : "+w"(v))
#else
#define HK_PIN(v) ((void)0)
#endif
/* Keeps a pointer in a register of its own. */
#if defined(__x86_64__) || defined(__aarch64__)
#define HK_HOLD_POINTER(p) __asm__("" : "+r"(p))
#else
#define HK_HOLD_POINTER(p) ((void)0)
#endif
/* Products of a sum that are added up in registers before they join the rest: see chunk.tmpl.h. */
#define HK_CHUNK 256
#define HK_PASTE4_(a, b, c, d) a##b##c##d
#define HK_PASTE4(a, b, c, d) HK_PASTE4_(a, b, c, d)
#endif
