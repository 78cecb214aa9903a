internal import Glibc

typealias Milliseconds = Int64

/// Leaves out the time that the machine slept, in which no server could have sent anything.
func monotonicMilliseconds() -> Milliseconds {
  var time = timespec()
  // Fails only for a clock that the system does not know; this one exists on every Linux (clock_gettime(2)).
  let result = clock_gettime(CLOCK_MONOTONIC, &time)
  precondition(result == 0, "clock_gettime")
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
