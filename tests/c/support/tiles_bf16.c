/* The AMX kernel of bf16 over emulated tiles. */
#include "support/tiles_emulated.h"
#define HK_NAME tiles_bf16
#define T_HALVES 1
#include "cpu/tmpl/dots/amx.tmpl.h"
