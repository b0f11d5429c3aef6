# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts in place: the headers, the licence, and a package for find_package(toroid CONFIG).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(toroid_package_folder "${CMAKE_INSTALL_DATADIR}/cmake/toroid")

install(
  TARGETS toroid
  EXPORT toroid-targets
  FILE_SET HEADERS
  FILE_SET mpi_headers
  FILE_SET fragments)
install(
  EXPORT toroid-targets
  NAMESPACE toroid::
  DESTINATION "${toroid_package_folder}")

configure_package_config_file(cmake/toroidConfig.cmake.in toroidConfig.cmake INSTALL_DESTINATION
                              "${toroid_package_folder}")
# While the version is 0.x, a new minor version may change names.
write_basic_package_version_file(toroidConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/toroidConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/toroidConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/toroidMpi.cmake"
        DESTINATION "${toroid_package_folder}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/toroid")
