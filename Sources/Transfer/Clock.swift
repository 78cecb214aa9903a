internal import Glibc

typealias Milliseconds = Int64

/// Leaves out the time that the machine slept, in which no server could have sent anything.
func monotonicMilliseconds() -> Milliseconds {
  let time = now(CLOCK_MONOTONIC)
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

func secondsSince1970() -> Int64 { Int64(now(CLOCK_REALTIME).tv_sec) }

private func now(_ clock: clockid_t) -> timespec {
  var time = timespec()
  // Fails only for a clock that the system does not know; both exist on every Linux (clock_gettime(2)).
  let result = clock_gettime(clock, &time)
  precondition(result == 0, "clock_gettime")
  return time
}
