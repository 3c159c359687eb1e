# What `make install` puts where.
if(TARGET hankel)
  install(TARGETS hankel hankel_static EXPORT hankelTargets)
  install(FILES include/hankel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(TARGET hk_cli)
  install(TARGETS hk_cli)
endif()
