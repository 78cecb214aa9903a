package import Spool

/// Bytes in at most five columns, with three digits and the prefixes of `--limit-rate`: K is 1024 bytes, as for ls(1)
/// `-h`.
package func shortBytes(_ bytes: UInt64) -> String {
  if bytes < 1024 { return "\(bytes)B" }
  var value = Double(bytes)
  var unit = ""
  for next in ["K", "M", "G", "T", "P", "E"] {
    value /= 1024
    unit = next
    // A value that would be rounded to 1024 is 1 of the next unit.
    if value < 1023.5 { break }
  }
  return digits(value) + unit
}

/// `1 job`, `12 jobs`.
package func jobCount(_ count: some BinaryInteger) -> String { count == 1 ? "1 job" : "\(count) jobs" }

/// Three digits; four from 1000 on.
private func digits(_ value: Double) -> String {
  func decimals(_ count: Int) -> String {
    let scale = count == 2 ? 100 : 10
    let number = Int((value * Double(scale)).rounded())
    let fraction = String(number % scale)
    return "\(number / scale)." + String(repeating: "0", count: count - fraction.count) + fraction
  }
  if value < 9.995 { return decimals(2) }
  if value < 99.95 { return decimals(1) }
  return String(Int(value.rounded()))
}

/// Bytes per second in at most seven columns.
package func shortRate(_ rate: Double) -> String { shortBytes(UInt64(max(0, min(rate, 1e18)))) + "/s" }

/// Seconds in at most six columns: `59s`, `3m20s`, `2h05m`, `4d03h`, `120d`.
package func shortDuration(_ seconds: Int64) -> String {
  func pair(_ large: Int64, _ unit: String, _ small: Int64, _ smallUnit: String) -> String {
    "\(large)\(unit)\(small < 10 ? "0" : "")\(small)\(smallUnit)"
  }
  switch max(0, seconds) {
  case let seconds where seconds < 60: return "\(seconds)s"
  case let seconds where seconds < 3600: return pair(seconds / 60, "m", seconds % 60, "s")
  case let seconds where seconds < 86_400: return pair(seconds / 3600, "h", seconds % 3600 / 60, "m")
  case let seconds where seconds < 100 * 86_400: return pair(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
  case let seconds where seconds < 10_000 * 86_400: return "\(seconds / 86_400)d"
  default: return "years"
  }
}

/// The same, and below a minute three digits: `0.31s`, `5.31s`, `12.5s`. Whole seconds stay so: nobody knew more.
func shortDuration(milliseconds: Int64) -> String {
  if milliseconds >= 59_950 || milliseconds % 1000 == 0 { return shortDuration((milliseconds / 500 + 1) / 2) }
  return digits(max(0.01, Double(milliseconds) / 1000)) + "s"
}

/// The percentage of `total`, rounded down: 100 only if `bytes` is all of it.
package func percentage(_ bytes: UInt64, of total: UInt64) -> Int {
  if bytes >= total { return 100 }
  return min(99, Int(Double(bytes) / Double(total) * 100))
}

/// Seconds until the remaining bytes have arrived; nil if the size or the rate is unknown.
package func secondsLeft(_ bytes: UInt64, of total: UInt64?, rate: Double?) -> Int64? {
  guard let total else { return nil }
  if bytes >= total { return 0 }
  guard let rate, rate > 0 else { return nil }
  return Int64(min(Double(total - bytes) / rate, 1e12).rounded(.up))
}

extension Timestamp {
  /// `in 52s` or `now` as seen from `now`, for a person who reads it at once; `at 2026-11-21T03:07:02Z` without it, for
  /// a log.
  package func told(from now: Timestamp?) -> String {
    guard let now else { return "at \(self)" }
    return self <= now ? "now" : "in \(shortDuration(seconds - now.seconds))"
  }

  static func told(_ text: String, from now: Timestamp?) -> String {
    Timestamp(text)?.told(from: now) ?? "at \(escaped(text))"
  }
}

/// The rate at which a number of bytes grows, from repeated looks at it.
package struct RateMeter: Sendable {
  private var looks: [(milliseconds: Int64, bytes: UInt64)] = []
  /// Milliseconds over which a rate is averaged: the same wherever a job's rate is shown.
  private static let window: Int64 = 5000

  package init() {}

  package mutating func add(_ bytes: UInt64, at milliseconds: Int64) {
    if let last = looks.last {
      if bytes < last.bytes { looks = [] }
      if milliseconds <= last.milliseconds { return }
    }
    looks.append((milliseconds, bytes))
    // Keeps one look from before the window, to compare with.
    while looks.count > 2, looks[1].milliseconds <= milliseconds - Self.window { looks.removeFirst() }
  }

  /// Bytes per second; nil before the second look.
  package var rate: Double? {
    guard let first = looks.first, let last = looks.last, last.milliseconds > first.milliseconds else { return nil }
    return Double(last.bytes - first.bytes) * 1000 / Double(last.milliseconds - first.milliseconds)
  }
}
