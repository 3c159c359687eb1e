# Which sources make the library on this machine, and with which flags.
# Out: HK_SOURCES, HK_DEFINITIONS (HK_HAVE_<ISA>=1 for each ISA whose sources are compiled in).
file(GLOB HK_SOURCES CONFIGURE_DEPENDS
  src/base/*.c src/core/*.c src/cpu/*.c src/cpu/ref/*.c src/cost/*.c src/plan/*.c src/plan/*/*.c src/tune/*.c src/stream/*.c src/api/*.c)
set(HK_DEFINITIONS "")
# Kernels are vectorised by hand; gcc 12's own vectoriser reads beyond the end of what the plain C tiles load
# (tests/c/dense_kernels_test.c faults at the guard pages).
set(kernel_flags -fno-math-errno -fno-trapping-math -fno-tree-vectorize)
if(HK_SANITIZE)
  list(APPEND kernel_flags -O1 -g1) # unrolled tiles with a check at every load take gcc minutes a file otherwise
endif()
if(HK_LIBFUZZER)
  # clang takes many minutes per file of unrolled tiles with checks. Coverage of the loops around the kernels guides the
  # fuzzer well enough, and guard pages see what a kernel reads and writes outside its tensors.
  list(APPEND kernel_flags -fno-sanitize=all)
  file(GLOB references src/cpu/ref/*.c)
  set_source_files_properties(${references} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
endif()

# hk_isa_sources(<ISA> <glob> <flag>...): compiles the files of one ISA with its flags, if the compiler knows them all.
function(hk_isa_sources isa pattern)
  string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${ARGN}")
  if(ARGN)
    check_c_compiler_flag("" HK_COMPILER_KNOWS_${isa})
    if(NOT HK_COMPILER_KNOWS_${isa})
      message(STATUS "hankel: ${isa} kernels skipped: the compiler does not know ${ARGN}")
      return()
    endif()
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${pattern})
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${kernel_flags};${ARGN}")
  set(HK_SOURCES ${HK_SOURCES} ${files} PARENT_SCOPE)
  set(HK_DEFINITIONS ${HK_DEFINITIONS} HK_HAVE_${isa}=1 PARENT_SCOPE)
endfunction()

hk_isa_sources(SCALAR "src/cpu/scalar/*_scalar.c")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(avx2 -mavx2 -mfma -mf16c)
  # without the tuning gcc 12 keeps addresses in vector registers, whose way back waits behind the multiply-adds in flight
  set(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mtune=haswell)
  hk_isa_sources(AVX2 "src/cpu/x86/*_avx2.c" ${avx2})
  hk_isa_sources(AVXVNNI "src/cpu/x86/*_avxvnni.c" ${avx2} -mavxvnni)
  if(HK_AVX512)
    hk_isa_sources(AVX512 "src/cpu/x86/*_avx512.c" ${avx512})
    hk_isa_sources(AVX512VNNI "src/cpu/x86/*_avx512vnni.c" ${avx512} -mavx512vnni)
    hk_isa_sources(AVX512BF16 "src/cpu/x86/*_avx512bf16.c" ${avx512} -mavx512bf16)
    hk_isa_sources(AVX512FP16 "src/cpu/x86/*_avx512fp16.c" ${avx512} -mavx512fp16)
    hk_isa_sources(AMX "src/cpu/x86/*_amx.c" ${avx512} -mamx-tile -mamx-int8 -mamx-bf16)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  hk_isa_sources(NEON "src/cpu/arm/*_neon.c")
endif()
