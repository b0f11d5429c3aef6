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

# toroid_use_mpi(<target> <wrapper>): compiles and links with the MPI library of a compiler wrapper, since FindMPI knows
# one library a project only.
function(toroid_use_mpi target wrapper)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE shown RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "toroid: ${wrapper} -show failed: ${complaint}")
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-D(.+)")
      target_compile_definitions(${target} PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l")
      target_link_libraries(${target} PRIVATE ${word})
    elseif(word MATCHES "^-(L|Wl,|pthread)")
      target_link_options(${target} PRIVATE ${word})
    endif()
  endforeach()
  target_compile_definitions(${target} PRIVATE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
endfunction()
