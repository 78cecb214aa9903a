/// The least rate of a server; a slower transfer counts as stalled.
package struct RateFloor: Sendable, Equatable {
  /// Bytes of the body per second, on average.
  package var bytesPerSecond: UInt64
  /// Seconds that the average is taken over.
  package var seconds: Int

  /// - Parameter seconds: that the average is taken over.
  package init(bytesPerSecond: UInt64, seconds: Int) {
    self.bytesPerSecond = bytesPerSecond
    self.seconds = seconds
  }

  /// Bytes per second below which the server is too slow.
  /// - Parameter share: what the rate limits leave to the transfer, in bytes per second; nil without a limit. Half of
  ///   it is fast enough: another connection would hardly be faster.
  func least(share: Double?) -> Double { min(Double(bytesPerSecond), share.map { $0 / 2 } ?? .infinity) }
}

/// How fast a server was over the latest stretch of its own time: the time between two requests, and the time that we
/// pause it, do not count. Pure: times come from outside, in milliseconds.
package struct Pace: Sendable {
  /// Samples in a stretch.
  private static let resolution: Milliseconds = 20

  private let stretch: Milliseconds
  private var bytes: UInt64 = 0
  /// Counted time up to ``runningSince``.
  private var counted: Milliseconds = 0
  private var runningSince: Milliseconds?
  /// Oldest first; of the samples that are a stretch old or older, only the youngest.
  private var samples: [(time: Milliseconds, bytes: UInt64)] = [(0, 0)]

  /// - Parameter seconds: the length of the stretch.
  package init(over seconds: Int) { stretch = Milliseconds(max(1, seconds)) * 1000 }

  /// The server's time runs from `now` on, if it does not run yet.
  mutating func run(at now: Milliseconds) { runningSince = runningSince ?? now }

  /// The server's time stops at `now`.
  mutating func rest(at now: Milliseconds) {
    counted = time(at: now)
    runningSince = nil
  }

  mutating func take(_ count: Int) { bytes += UInt64(count) }

  /// Bytes per second over the latest stretch; nil until one has passed.
  mutating func rate(at now: Milliseconds) -> Double? {
    let time = time(at: now)
    if time - samples[samples.count - 1].time >= max(1, stretch / Self.resolution) { samples.append((time, bytes)) }
    while samples.count > 1, time - samples[1].time >= stretch { samples.removeFirst() }
    let elapsed = time - samples[0].time
    guard elapsed >= stretch else { return nil }
    return Double(bytes - samples[0].bytes) * 1000 / Double(elapsed)
  }

  private func time(at now: Milliseconds) -> Milliseconds { counted + (runningSince.map { now - $0 } ?? 0) }
}
