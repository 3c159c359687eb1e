/* The AMX kernel of 8 bits over emulated tiles. */
#include "support/tiles_emulated.h"
#define HK_NAME tiles_s8
#define T_HALVES 0
#include "cpu/tmpl/dots/amx.tmpl.h"
