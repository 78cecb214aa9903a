internal import Glibc

/// A moment in whole seconds since the epoch, written as RFC 3339 in UTC.
package struct Timestamp: Comparable, Hashable, Sendable, CustomStringConvertible {
  /// Seconds since the epoch.
  package let seconds: Int64

  /// - Parameter seconds: since the epoch.
  package init(seconds: Int64) { self.seconds = seconds }

  /// This host's wall clock.
  package static func now() -> Timestamp { Timestamp(seconds: Host.current.now()) }

  package static func < (left: Timestamp, right: Timestamp) -> Bool { left.seconds < right.seconds }
  /// A time beyond 64 bits wraps round; none is near.
  package static func + (left: Timestamp, seconds: Int64) -> Timestamp {
    Timestamp(seconds: left.seconds &+ seconds)
  }

  package var description: String {
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
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 20 || bytes.count == 10 else { return nil }
    let shape = Array("0000-00-00T00:00:00Z".utf8.prefix(bytes.count))
    var numbers: [Int32] = [0]
    for (byte, expected) in zip(bytes, shape) {
      if expected == UInt8(ascii: "0") {
        guard byte >= 0x30, byte <= 0x39 else { return nil }
        numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int32(byte - 0x30)
      } else {
        guard byte == expected else { return nil }
        numbers.append(0)
      }
    }
    while numbers.count < 6 { numbers.append(0) }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    let moment = Timestamp(seconds: Int64(timegm(&parts)))
    // timegm(3) turns 31 February into a day in March: a moment that is written differently than it was read does not
    // exist.
    guard moment.description.utf8.prefix(bytes.count).elementsEqual(bytes) else { return nil }
    self = moment
  }
}
