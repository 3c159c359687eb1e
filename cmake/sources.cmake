# Which sources make the library on this machine, and with which flags.
# Out: HK_SOURCES, HK_DEFINITIONS (HK_HAVE_<ISA>=1 for each ISA whose sources are compiled in).
file(GLOB HK_SOURCES CONFIGURE_DEPENDS
  src/base/*.c src/core/*.c src/cpu/*.c src/cpu/ref/*.c src/cost/*.c src/plan/*.c src/plan/*/*.c src/tune/*.c src/stream/*.c src/causal/*.c src/longconv/*.c src/api/*.c)
set(HK_DEFINITIONS "")
# Kernels are vectorised by hand; gcc 12's own vectoriser reads beyond the end of what the plain C tiles load
# (tests/c/cpu/kernels_test.c faults at the guard pages).
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

# hk_isa_sources(<ISA> <list> <flag>...): compiles the kernels of one ISA with its flags, if the compiler knows them all.
# The list has one section per object, "#if defined HK_UNIT_<section>"; see src/cpu/x86/avx2.inc.
function(hk_isa_sources isa list)
  string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${ARGN}")
  if(ARGN)
    check_c_compiler_flag("" HK_COMPILER_KNOWS_${isa})
    if(NOT HK_COMPILER_KNOWS_${isa})
      message(STATUS "hankel: ${isa} kernels skipped: the compiler does not know ${ARGN}")
      return()
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${list})
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/${list} sections REGEX "^#if defined HK_UNIT_")
  string(TOLOWER ${isa} suffix)
  foreach(section ${sections})
    string(REGEX REPLACE "^#if defined HK_UNIT_" "" unit ${section})
    set(file ${PROJECT_BINARY_DIR}/cpu/${unit}_${suffix}.c)
    file(CONFIGURE OUTPUT ${file} CONTENT "#define HK_UNIT_@unit@\n#include \"@list@\"\n" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${kernel_flags};${ARGN}")
  set(HK_SOURCES ${HK_SOURCES} ${files} PARENT_SCOPE)
  set(HK_DEFINITIONS ${HK_DEFINITIONS} HK_HAVE_${isa}=1 PARENT_SCOPE)
endfunction()

hk_isa_sources(SCALAR cpu/scalar/scalar.inc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  hk_isa_sources(AVX2 cpu/x86/avx2.inc -mavx2 -mfma -mf16c)
  hk_isa_sources(AVXVNNI cpu/x86/avxvnni.inc -mavx2 -mfma -mf16c -mavxvnni)
  if(HK_AVX512)
    # without the tuning gcc 12 keeps addresses in vector registers, whose way back waits behind the multiply-adds in flight
    set(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mtune=haswell)
    hk_isa_sources(AVX512 cpu/x86/avx512.inc ${avx512})
    hk_isa_sources(AVX512VNNI cpu/x86/avx512vnni.inc ${avx512} -mavx512vnni)
    hk_isa_sources(AVX512BF16 cpu/x86/avx512bf16.inc ${avx512} -mavx512bf16)
    hk_isa_sources(AMX cpu/x86/amx.inc ${avx512} -mamx-tile -mamx-bf16 -mamx-int8)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  hk_isa_sources(NEON cpu/arm/neon.inc)
endif()
