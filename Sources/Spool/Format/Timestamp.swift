internal import Glibc
internal import Synchronization

/// A moment in whole seconds since the epoch, written as RFC 3339 in UTC.
package struct Timestamp: Comparable, Hashable, Sendable, CustomStringConvertible {
  /// Seconds since the epoch.
  package let seconds: Int64

  package init(seconds: Int64) { self.seconds = seconds }

  package static func < (left: Timestamp, right: Timestamp) -> Bool { left.seconds < right.seconds }
  /// A time beyond 64 bits wraps round; none is near.
  package static func + (left: Timestamp, seconds: Int64) -> Timestamp { Timestamp(seconds: left.seconds &+ seconds) }

  /// The latest text: a worker writes most of its lines within a second of others.
  private static let latest = Mutex((seconds: Int64.min, text: ""))

  package var description: String {
    Self.latest.withLock { latest in
      if latest.seconds != seconds { latest = (seconds, written) }
      return latest.text
    }
  }

  private var written: String {
    var clock = time_t(seconds)
    var parts = tm()
    gmtime_r(&clock, &parts)
    var text: [UInt8] = []
    text.reserveCapacity(20)
    let year = String(parts.tm_year + 1900)
    for _ in 0..<max(0, 4 - year.utf8.count) { text.append(0x30) }
    text.append(utf8Of: year)
    func append(_ separator: Unicode.Scalar, _ value: Int32) {
      text.append(UInt8(ascii: separator))
      text.append(0x30 + UInt8(value / 10))
      text.append(0x30 + UInt8(value % 10))
    }
    append("-", parts.tm_mon + 1)
    append("-", parts.tm_mday)
    append("T", parts.tm_hour)
    append(":", parts.tm_min)
    append(":", parts.tm_sec)
    text.append(UInt8(ascii: "Z"))
    return String(decoding: text, as: UTF8.self)
  }

  /// `2026-12-01T00:00:00Z` or `2026-12-01`; nil for anything else, and for days and hours that don't exist.
  package init?(_ text: some StringProtocol) { self.init(utf8: text.utf8) }

  init?(utf8 text: some Collection<UInt8>) {
    let bytes = Array(text)
    guard bytes.count == 20 || bytes.count == 10,
      zip(bytes, "0000-00-00T00:00:00Z".utf8).allSatisfy({ $1 == 0x30 ? 0x30...0x39 ~= $0 : $0 == $1 })
    else { return nil }
    func number(_ start: Int, _ length: Int) -> Int32 {
      bytes.dropFirst(start).prefix(length).reduce(0) { $0 * 10 + Int32($1 - 0x30) }
    }
    let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2))
    let (hour, minute, second) = (number(11, 2), number(14, 2), number(17, 2))
    let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let days: Int32 = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard 1...12 ~= month, 1...days ~= day, hour < 24, minute < 60, second < 60 else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
    seconds = Int64(timegm(&parts))
  }
}
