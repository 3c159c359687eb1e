/* The instances of lane.cuh: V, KT, ST, DIL and U; the host (tapsum_lane.c) knows them. */
#define V 1
#define KT 1
#define ST 4
#define DIL 0
#define U 4
#define LANE(name) NAMED(name, 1_1_4_0)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 7
#define DIL 0
#define U 4
#define LANE(name) NAMED(name, 1_1_7_0)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 8
#define ST 3
#define DIL 1
#define U 4
#define LANE(name) NAMED(name, 1_8_3_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 8
#define ST 3
#define DIL 0
#define U 2
#define LANE(name) NAMED(name, 1_8_3_0)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 4
#define ST 3
#define DIL 1
#define U 4
#define LANE(name) NAMED(name, 1_4_3_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 4
#define ST 3
#define DIL 0
#define U 2
#define LANE(name) NAMED(name, 1_4_3_0)
#include "cuda/gradient/lane.cuh"
#if TYPE_BYTES == 2
#define V 2
#define KT 1
#define ST 3
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 2_1_3_1)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 4
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 2_1_4_1)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 5
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 2_1_5_1)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 7
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 2_1_7_1)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 3
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 2_1_3_2)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 5
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 2_1_5_2)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 7
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 2_1_7_2)
#include "cuda/gradient/lane.cuh"
#define V 2
#define KT 1
#define ST 4
#define DIL 0
#define U 4
#define LANE(name) NAMED(name, 2_1_4_0)
#include "cuda/gradient/lane.cuh"
#else
#define V 1
#define KT 1
#define ST 3
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 1_1_3_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 4
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 1_1_4_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 5
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 1_1_5_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 7
#define DIL 1
#define U 8
#define LANE(name) NAMED(name, 1_1_7_1)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 3
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 1_1_3_2)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 5
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 1_1_5_2)
#include "cuda/gradient/lane.cuh"
#define V 1
#define KT 1
#define ST 7
#define DIL 2
#define U 4
#define LANE(name) NAMED(name, 1_1_7_2)
#include "cuda/gradient/lane.cuh"
#endif
