/* How many processors this process may use. The number of processors of the
 * machine is too many in a container or under taskset: threads beyond the
 * allowance only wait for each other. */
#define _GNU_SOURCE      /* sched_getaffinity */
#define _DARWIN_C_SOURCE /* _SC_NPROCESSORS_ONLN */
#include "base/threads.h"

#include <stdio.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>

static long allowed(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t holds */
}

/* The control group's share, "quota period" in microseconds, rounded up. */
static long quota(void) {
  long share = ATT_THREADS_MAX, used, period;
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!file) return share;
  if (fscanf(file, "%ld %ld", &used, &period) == 2 && used > 0 && period > 0)
    share = used / period + (used % period != 0);
  fclose(file);
  return share;
}

#else

static long allowed(void) { return sysconf(_SC_NPROCESSORS_ONLN); }
static long quota(void) { return ATT_THREADS_MAX; }

#endif

int att_processors(void) {
  long count = allowed(), share = quota();
  if (count > share) count = share;
  return count < 1 ? 1 : count > ATT_THREADS_MAX ? ATT_THREADS_MAX : (int)count;
}
