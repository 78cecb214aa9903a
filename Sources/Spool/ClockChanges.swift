/// Notices that the clock was set, or that the machine slept: all heartbeats before seem to be as much older.
struct ClockChanges {
  private(set) var setAt = Int64.min / 2
  private(set) var wokeAt = Int64.min / 2
  private var last = read()
  private var offset: Int64?

  private static func read() -> (now: Int64, ahead: Int64, asleep: Int64) {
    let host = Host.current
    let now = host.milliseconds()
    return (now, host.wallMilliseconds() - now, now - host.awakeMilliseconds())
  }

  mutating func look() {
    let found = Self.read()
    if abs(found.ahead - last.ahead) > 1000 { setAt = found.now }
    if found.asleep - last.asleep > 1000 { wokeAt = found.now }
    last = found
  }

  /// - Parameter offset: see ``Spool/learnClock(host:)``: 0 for less than 2 s, and it may be a second off.
  mutating func noteOffset(_ offset: Int64) {
    if let last = self.offset, abs(offset - last) > 3 { setAt = Host.current.milliseconds() }
    self.offset = offset
  }
}
