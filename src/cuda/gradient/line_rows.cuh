/* The instances of line.cuh and walk.cuh: RT and ST. */
#define RT 1
#define ST 4
#define LINE(name) NAMED(name, 1_4)
#include "cuda/gradient/line.cuh"
#define RT 1
#define ST 8
#define LINE(name) NAMED(name, 1_8)
#include "cuda/gradient/line.cuh"
#define RT 3
#define ST 3
#define LINE(name) NAMED(name, 3_3)
#include "cuda/gradient/line.cuh"
#define RT 5
#define ST 5
#define LINE(name) NAMED(name, 5_5)
#include "cuda/gradient/line.cuh"
#define RT 7
#define ST 7
#define LINE(name) NAMED(name, 7_7)
#include "cuda/gradient/line.cuh"
