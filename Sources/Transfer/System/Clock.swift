internal import Glibc

/// A time of ``monotonicMilliseconds()``, or a span, in milliseconds.
typealias Milliseconds = Int64

/// Does not count the time that the machine slept, in which no server could send anything.
func monotonicMilliseconds() -> Milliseconds {
  var time = timespec()
  // Fails only for a clock that the system does not have; every Linux has this one (clock_gettime(2)).
  let result = clock_gettime(CLOCK_MONOTONIC, &time)
  precondition(result == 0, "clock_gettime")
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

/// Seconds since 1970-01-01T00:00:00Z (time(2)), to compare with the dates in header fields.
func unixSeconds() -> Int64 { Int64(time(nil)) }
