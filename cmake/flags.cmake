# Flags that hold for every target of the project: an interface target, so that nothing leaks to those who link hankel.
add_library(hk_flags INTERFACE)
target_compile_options(hk_flags INTERFACE -Wall -Wextra $<$<BOOL:${HK_WERROR}>:-Werror>)
# Contraction is never left to the compiler: a fused multiply-add is written as one, so gcc and clang give the same bits.
target_compile_options(hk_flags INTERFACE -ffp-contract=off)
target_compile_definitions(hk_flags INTERFACE _GNU_SOURCE)

if(HK_SANITIZE)
  target_compile_options(hk_flags INTERFACE -fsanitize=${HK_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(hk_flags INTERFACE -fsanitize=${HK_SANITIZE})
  target_compile_definitions(hk_flags INTERFACE HK_SANITIZED=1)
  if(HK_SANITIZE MATCHES undefined)
    target_compile_options(hk_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

if(HK_COVERAGE)
  target_compile_options(hk_flags INTERFACE --coverage -O1)
  target_link_options(hk_flags INTERFACE --coverage)
  target_compile_definitions(hk_flags INTERFACE HK_COVERAGE="${PROJECT_BINARY_DIR}/coverage")
endif()

if(HK_LIBFUZZER)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "HK_LIBFUZZER needs clang")
  endif()
  # clang's check of pointer arithmetic also reports NULL + 0, which gcc's leaves alone.
  target_compile_options(hk_flags INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize=pointer-overflow)
endif()
