// What libFuzzer offers to a program with a main of its own (llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a
// library"); LLVM installs no header that declares it.
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const uint8_t *data, size_t size));
