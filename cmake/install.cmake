# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays down: public headers, the static library with its package configuration, the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(INGOT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)

install(TARGETS ingot EXPORT ingotTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ingot_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/ingot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/ingot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})  # made by the build
install(EXPORT ingotTargets NAMESPACE ingot:: DESTINATION ${INGOT_CMAKE_DIR})

configure_package_config_file(cmake/ingotConfig.cmake.in ${PROJECT_BINARY_DIR}/ingotConfig.cmake
  INSTALL_DESTINATION ${INGOT_CMAKE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ingotConfig.cmake ${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake
  DESTINATION ${INGOT_CMAKE_DIR})
