# The CUDA side. The host part (src/cuda/**.c) is always built: it loads the driver at run time. The kernels are compiled
# by nvcc into one fatbin per row of src/cuda/driver/images.inc and embedded with .incbin as hk_fatbin_<name>[] in
# libhankel-cuda (cmake/library.cmake), which the library opens at run time; without nvcc there is none, and the device says so.
# HK_CUDA_COMPRESS has nvcc compress every image (a seventh of the size); the driver expands an image when it loads it.
# Out: HK_IMAGES (the embedded fatbins); appends to HK_SOURCES.
file(GLOB cuda_host CONFIGURE_DEPENDS src/cuda/*.c src/cuda/*/*.c)
file(GLOB cuda_headers CONFIGURE_DEPENDS src/cuda/*.cuh src/cuda/*.h src/cuda/*/*.cuh src/cuda/*/*.h src/cuda/*/*.inc)
set(images ${PROJECT_SOURCE_DIR}/src/cuda/driver/images.inc)
list(REMOVE_ITEM cuda_host ${PROJECT_SOURCE_DIR}/src/cuda/driver/images.c) # of libhankel-cuda
list(APPEND HK_SOURCES ${cuda_host})
set(HK_CUDA_CODE "-gencode=arch=compute_90a,code=sm_90a" CACHE STRING "nvcc -gencode options")
option(HK_CUDA_COMPRESS "Compress the device code: for packages" OFF)
if(HK_CUDA_COMPRESS)
  set(hk_compress -compress-mode=size)
endif()

if(HK_CUDA)
  find_program(HK_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(HK_NVCC)
    enable_language(ASM)
    # of this one alone, so that a build with kernels reuses the objects of one without (`make run`, then `make test`)
    set_source_files_properties(src/cuda/driver/nvrtc.c PROPERTIES COMPILE_DEFINITIONS HK_HAVE_CUDA_KERNELS=1)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${images})
    file(STRINGS ${images} rows REGEX "^IMAGE\\(")
    foreach(row ${rows})
      string(REGEX MATCH "^IMAGE\\(([a-z0-9_]+), \"([a-z0-9_/.]+)\", \"([a-z0-9]*)\"\\)" row ${row})
      set(name ${CMAKE_MATCH_1})
      set(kernel ${PROJECT_SOURCE_DIR}/src/cuda/${CMAKE_MATCH_2})
      set(type ${CMAKE_MATCH_3})
      set(fatbin ${PROJECT_BINARY_DIR}/cuda/${name}.fatbin)
      set(embed ${PROJECT_BINARY_DIR}/cuda/${name}.S)
      add_custom_command(OUTPUT ${fatbin}
        COMMAND bash ${PROJECT_SOURCE_DIR}/scripts/fatbin.sh ${HK_NVCC} ${fatbin} ${kernel}
                -fatbin -O3 -std=c++17 -split-compile=0 ${HK_CUDA_CODE} ${hk_compress} $<$<BOOL:${type}>:-DHK_AS_${type}> -I${PROJECT_SOURCE_DIR}/src
        DEPENDS ${kernel} ${cuda_headers} ${PROJECT_SOURCE_DIR}/scripts/fatbin.sh COMMENT "nvcc ${name}" VERBATIM COMMAND_EXPAND_LISTS)
      file(CONFIGURE OUTPUT ${embed} CONTENT [[
.section .rodata
.balign 64
.global hk_fatbin_@name@
.hidden hk_fatbin_@name@
hk_fatbin_@name@:
.incbin "@fatbin@"
.byte 0
.section .note.GNU-stack,"",%progbits
]] @ONLY)
      set_source_files_properties(${embed} PROPERTIES OBJECT_DEPENDS ${fatbin})
      list(APPEND HK_IMAGES ${embed})
      list(APPEND fatbins ${fatbin})
    endforeach()
    add_custom_target(hk_cuda DEPENDS ${fatbins})
    # The sources again as text, for run-time compilation: hk_text_<name>[] and hk_text_<name>_end[] (src/cuda/driver/texts.inc).
    set(texts "")
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/cuda/driver/texts.inc rows REGEX "^TEXT\\(")
    foreach(row ${rows})
      string(REGEX REPLACE "^TEXT\\(([^,]*), \"(.*)\"\\).*" "\\1" name ${row})
      string(REGEX REPLACE "^TEXT\\(([^,]*), \"(.*)\"\\).*" "\\2" file ${row})
      set(label hk_text_${name})
      string(APPEND texts ".global ${label}\n.hidden ${label}\n${label}:\n.incbin \"${PROJECT_SOURCE_DIR}/src/${file}\"\n"
        ".global ${label}_end\n.hidden ${label}_end\n${label}_end:\n.byte 0\n")
    endforeach()
    set(embed ${PROJECT_BINARY_DIR}/cuda/texts.S)
    file(CONFIGURE OUTPUT ${embed} CONTENT ".section .rodata\n@texts@.section .note.GNU-stack,\"\",%progbits\n" @ONLY)
    set_source_files_properties(${embed} PROPERTIES OBJECT_DEPENDS "${cuda_headers}")
    list(APPEND HK_SOURCES ${embed})
  else()
    message(STATUS "hankel: CUDA kernels skipped: nvcc was not found (the CPU side is complete without it)")
  endif()
endif()
