internal import CLinux
internal import Glibc

/// The clocks of a host, and waiting by them. A test puts simulated ones in their place.
protocol Clock: Sendable {
  /// Seconds since the epoch, by the wall clock.
  func now() -> Int64
  /// CLOCK_BOOTTIME (clock_gettime(2)): seconds, also those that the machine slept.
  func secondsSinceBoot() -> Int64
  /// Blocks the thread.
  func wait(milliseconds: Int)
}

/// This machine's.
struct HostClock: Clock {
  /// The clock of this thread or task.
  @TaskLocal static var current: any Clock = HostClock()

  func now() -> Int64 { seconds(of: CLOCK_REALTIME) }

  func secondsSinceBoot() -> Int64 { seconds(of: CLOCK_BOOTTIME) }

  func wait(milliseconds: Int) { usleep(UInt32(milliseconds * 1000)) }

  private func seconds(of id: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(id, &time)
    return Int64(time.tv_sec)
  }
}
