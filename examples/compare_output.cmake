# SPDX-License-Identifier: Apache-2.0
# cmake -D PROGRAM=… [-D LAUNCH=…] -D EXPECTED=… -P compare_output.cmake: what the program prints must be what the file
# says. LAUNCH is the command that starts it, a list.
execute_process(COMMAND ${LAUNCH} "${PROGRAM}" RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE errors)
file(READ "${EXPECTED}" expected)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}\n${printed}${errors}")
endif()
if(expected STREQUAL "" OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\ninstead of\n${expected}")
endif()
