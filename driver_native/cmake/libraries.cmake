# What C programs use, of the objects that the wheel and the tests are made of: the shared and the static library of client, driver
# and archive, and the install rules. docs/c.md is the page for users; tests/system/test_c_libraries.py builds the examples on it.
#
# Components: library (the shared library), development (static library, headers, CMake package, pkg-config), executables.
set(PARTS as_core as_driver as_client as_store as_archive)
list(TRANSFORM PARTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE OBJECTS)
add_library(aeron_spark SHARED ${OBJECTS})
add_library(aeron_spark_static STATIC ${OBJECTS})
set_target_properties(aeron_spark_static PROPERTIES OUTPUT_NAME aeron_spark)
# Before 1.0 the binary interface changes with the minor version.
set_target_properties(aeron_spark PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
foreach(library aeron_spark aeron_spark_static)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
  add_library(aeron_spark::${library} ALIAS ${library})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/driver_native/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/archive/include>)
  target_link_libraries(${library} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
  target_link_options(${library} PRIVATE $<TARGET_PROPERTY:as_flags,INTERFACE_LINK_OPTIONS>)
endforeach()

if(NOT AERON_SPARK_INSTALL)
  return()
endif()

install(TARGETS aeron_spark EXPORT aeron_spark LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS aeron_spark_static EXPORT aeron_spark COMPONENT development)
install(TARGETS aeron-spark-driver aeron-spark-archive COMPONENT executables)
foreach(headers driver_native archive)
  install(DIRECTORY ${headers}/include/aeron_spark DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
endforeach()

include(CMakePackageConfigHelpers)
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/aeron_spark)
install(EXPORT aeron_spark NAMESPACE aeron_spark:: FILE aeron_sparkTargets.cmake DESTINATION ${PACKAGE_DIR}
  COMPONENT development)
configure_package_config_file(driver_native/cmake/aeron_sparkConfig.cmake.in ${PROJECT_BINARY_DIR}/aeron_sparkConfig.cmake
  INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/aeron_sparkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/aeron_sparkConfig.cmake ${PROJECT_BINARY_DIR}/aeron_sparkConfigVersion.cmake
  DESTINATION ${PACKAGE_DIR} COMPONENT development)

# Relative to itself: the prefix is known at the installation only (`cmake --install --prefix`).
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(driver_native/cmake/aeron_spark.pc.in ${PROJECT_BINARY_DIR}/aeron_spark.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/aeron_spark.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
