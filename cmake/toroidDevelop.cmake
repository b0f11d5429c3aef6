# SPDX-License-Identifier: Apache-2.0
# What the project's own programs (tests, benches, examples) share. Consumers of the library see none of it.

# The warnings under which every source and header of the project is clean. CMAKE_COMPILE_WARNING_AS_ERROR, which the
# presets set, makes them errors.
set(toroid_warning_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
add_library(toroid-warnings INTERFACE)
foreach(flag IN LISTS toroid_warning_flags)
  target_compile_options(toroid-warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${flag}>)
endforeach()

# toroid_need(<package> <Debian package> <option>): find a package that an option asked for, or say what to install.
macro(toroid_need package debian_package option)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "toroid: ${option} is ON, and that needs ${package}, which was not found. "
                        "On Debian: apt-get install ${debian_package}. Or configure with -D${option}=OFF.")
  endif()
endmacro()

# toroid_program(<name> <source>…): a program over the library, with the project's warnings.
function(toroid_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE toroid::toroid toroid-warnings)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
