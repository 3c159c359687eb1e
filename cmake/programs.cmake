# The command `hankel` (cli/) and the programs of apps/: they see hankel.h and nothing else of the library.
file(GLOB cli_sources CONFIGURE_DEPENDS cli/*.c cli/*/*.c)
if(cli_sources AND TARGET hankel)
  add_executable(hk_cli ${cli_sources})
  set_target_properties(hk_cli PROPERTIES OUTPUT_NAME hankel INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_include_directories(hk_cli PRIVATE cli)
  target_link_libraries(hk_cli PRIVATE hankel hk_flags m ${CMAKE_DL_LIBS} Threads::Threads)
  # The page of bench --html is built in; the commit it names is that of the last configure.
  execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE hk_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE hk_no_commit)
  if(hk_no_commit)
    set(hk_commit unknown)
  endif()
  set_source_files_properties(cli/bench/html.c PROPERTIES
    COMPILE_DEFINITIONS "HK_REPORT_HTML=\"${PROJECT_SOURCE_DIR}/cli/bench/report.html\";HK_COMMIT=\"${hk_commit}\""
    OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/cli/bench/report.html)
  if(JANSSON_FOUND)
    target_link_libraries(hk_cli PRIVATE PkgConfig::JANSSON)
    target_compile_definitions(hk_cli PRIVATE HK_HAVE_JANSSON=1)
  else()
    message(STATUS "hankel: jansson was not found: parts of the command that read JSON are left out")
  endif()
endif()

if(TARGET hankel)
  add_subdirectory(apps/jax)
endif()
if(TARGET hankel AND EXISTS ${PROJECT_SOURCE_DIR}/apps/nam/CMakeLists.txt)
  add_subdirectory(apps/nam)
endif()

if(EXISTS ${PROJECT_SOURCE_DIR}/apps/lv2/CMakeLists.txt)
  if(TARGET hk_nam AND LV2_FOUND)
    add_subdirectory(apps/lv2)
  else()
    message(STATUS "hankel: apps/lv2 skipped: it needs lv2 1.18 and sndfile")
  endif()
endif()
