# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE=… -D BUILD=… -D WORK=… -D VERSION=… -D GENERATOR=… -D COMPILER=… -D MPI=… -P consume.cmake
set(program "${CMAKE_CURRENT_LIST_DIR}/program")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# expect(<what> <0, or words that the failure must contain> <command>…)
function(expect what outcome)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  # Messages are wrapped at the terminal's width.
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  string(FIND "${flat}" "${outcome}" found)
  if(outcome STREQUAL "0" AND result EQUAL 0)
    message(STATUS "${what}: works")
  elseif(NOT outcome STREQUAL "0" AND NOT result EQUAL 0 AND NOT found EQUAL -1)
    message(STATUS "${what}: refused with '${outcome}'")
  else()
    message(FATAL_ERROR "${what}: expected '${outcome}', got status ${result} and\n${output}")
  endif()
endfunction()

# use(<name> <option>…): configure, build and run the stranger's program.
function(use name)
  set(build "${WORK}/${name}")
  expect("${name}: configure" 0 "${CMAKE_COMMAND}" -S "${program}" -B "${build}" -G "${GENERATOR}"
         -D "CMAKE_CXX_COMPILER=${COMPILER}" ${ARGN})
  expect("${name}: build" 0 "${CMAKE_COMMAND}" --build "${build}")
  expect("${name}: run" 0 "${build}/stranger")
endfunction()

# refuse(<name> <words> <option>…): configuring the stranger's program must fail with these words.
function(refuse name words)
  expect("${name}" "${words}" "${CMAKE_COMMAND}" -S "${program}" -B "${WORK}/${name}" -G "${GENERATOR}"
         -D "CMAKE_CXX_COMPILER=${COMPILER}" -D FROM=package ${ARGN})
endfunction()

string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor_version "${VERSION}")
set(prefix "${WORK}/prefix")
expect("install" 0 "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")

# Every header of the source tree is installed, and nothing else.
file(GLOB_RECURSE wanted RELATIVE "${SOURCE}/include" "${SOURCE}/include/*")
file(GLOB_RECURSE installed RELATIVE "${prefix}/include" "${prefix}/include/*")
list(SORT wanted)
list(SORT installed)
if(NOT wanted OR NOT wanted STREQUAL installed)
  message(FATAL_ERROR "installed headers\n  ${installed}\ndiffer from the sources\n  ${wanted}")
endif()

use(installed -D FROM=package -D "WANT_VERSION=${minor_version}" -D "CMAKE_PREFIX_PATH=${prefix}")
refuse(major-version "considered but not accepted" -D WANT_VERSION=99.0 -D "CMAKE_PREFIX_PATH=${prefix}")
string(REGEX MATCH "^[0-9]+" major_version "${VERSION}")
refuse(minor-version "considered but not accepted" -D "WANT_VERSION=${major_version}.999" -D "CMAKE_PREFIX_PATH=${prefix}")
refuse(unknown-component "component 'torus' is not the name of a component of toroid" -D WANT_COMPONENT=torus
       -D "CMAKE_PREFIX_PATH=${prefix}")
foreach(component IN ITEMS ucx env device resnet50)
  refuse(component-${component} "component '${component}' is not in this version (${VERSION}) of toroid" -D
         WANT_COMPONENT=${component} -D "CMAKE_PREFIX_PATH=${prefix}")
endforeach()

if(MPI)
  use(installed-mpi -D FROM=package -D WANT_COMPONENT=mpi -D "CMAKE_PREFIX_PATH=${prefix}")
else()
  message(STATUS "the component mpi is left out: the build is without TOROID_MPI")
endif()

file(RENAME "${prefix}" "${WORK}/moved")
use(moved -D FROM=package -D "WANT_VERSION=${minor_version}" -D "CMAKE_PREFIX_PATH=${WORK}/moved")
use(subdirectory -D "FROM=${SOURCE}")
file(REMOVE_RECURSE "${WORK}")
