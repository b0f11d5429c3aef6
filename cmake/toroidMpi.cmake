# SPDX-License-Identifier: Apache-2.0
# Makes the target toroid::mpi: the library with one MPI, whichever FindMPI finds, of which it uses the C functions only.
# Used in the source tree and from the installed package. Without MPI there is no such target.
if(NOT TARGET toroid::mpi)
  # FindMPI answers for languages that the project uses.
  get_property(toroid_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST toroid_languages)
    set(toroid_mpi_language C)
  else()
    set(toroid_mpi_language CXX)
    set(MPI_CXX_SKIP_MPICXX TRUE)
  endif()
  find_package(MPI QUIET COMPONENTS ${toroid_mpi_language})
  if(MPI_${toroid_mpi_language}_FOUND)
    add_library(toroid::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(toroid::mpi INTERFACE toroid::toroid MPI::MPI_${toroid_mpi_language})
    # The C++ bindings that MPI has given up are not included.
    target_compile_definitions(toroid::mpi INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
  endif()
  unset(toroid_mpi_language)
  unset(toroid_languages)
endif()
