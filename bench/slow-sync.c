/* Delays each sync of a process by SYNC_MS milliseconds, like a slower disk. Loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int delay(const char *name, int file) {
  const char *delay_ms = getenv("SYNC_MS");
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  usleep((delay_ms ? atoi(delay_ms) : 0) * 1000);
  return sync(file);
}

int fsync(int file) { return delay("fsync", file); }
int fdatasync(int file) { return delay("fdatasync", file); }
