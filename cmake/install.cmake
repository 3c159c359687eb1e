# What `make install` puts where: header, both libraries, hankel.pc, the CMake package (targets hankel::hankel, hankel::nam
# and their _static twins), the command with its man page and completion, the documents (docs/ as it is, and the site in
# html/ where `make docs` has built it). apps/ install their own. scripts/uninstall.sh removes all of it.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hankel)

if(TARGET hankel)
  install(TARGETS hankel hankel_static EXPORT hankelTargets)
  if(TARGET hankel_cuda)
    install(TARGETS hankel_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
  endif()
  install(FILES include/hankel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT hankelTargets NAMESPACE hankel:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/hankelConfig.cmake.in ${PROJECT_BINARY_DIR}/hankelConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/hankelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/hankelConfig.cmake ${PROJECT_BINARY_DIR}/hankelConfigVersion.cmake
    DESTINATION ${package_dir})

  # The prefix in hankel.pc follows the file (pcfiledir), so an installed tree may be moved.
  file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  configure_file(cmake/hankel.pc.in ${PROJECT_BINARY_DIR}/hankel.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hankel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "*.py" EXCLUDE PATTERN site EXCLUDE PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/site/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html OPTIONAL)
endif()

if(TARGET hk_cli)
  install(TARGETS hk_cli)
  install(FILES cli/hankel.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES cli/hankel.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hankel OPTIONAL)
endif()
