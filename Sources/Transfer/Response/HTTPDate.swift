/// The three date formats of HTTP (RFC 9110, 5.6.7), as seconds since 1970-01-01T00:00:00Z.
///
/// | format | example |
/// |---|---|
/// | IMF-fixdate | `Sun, 06 Nov 1994 08:49:37 GMT` |
/// | rfc850-date, obsolete | `Sunday, 06-Nov-94 08:49:37 GMT` |
/// | asctime-date, obsolete | `Sun Nov  6 08:49:37 1994` |
///
/// curl_getdate(3) would read these too, but also `1994` and `next week`; a date decides here whether data may
/// be joined, so only the grammar counts. The name of the weekday is not compared with the date.
package enum HTTPDate {
  /// - Parameter now: seconds since 1970; only places the two-digit year of an rfc850-date.
  /// - Returns: nil if `text` is none of the three formats or no day of the calendar.
  package static func parse(_ text: String, now: Int64) -> Int64? {
    guard text.utf8.count <= 40 else { return nil }
    let bytes = Array(text.utf8)
    if bytes.count == 29, bytes[3] == 0x2C { return fixdate(bytes) }
    let words = bytes.split(separator: 0x20, omittingEmptySubsequences: false)
    switch words.count {
    case 6:  // Sun Nov  6 08:49:37 1994
      guard words[2].isEmpty else { return nil }
      return asctime(words[0], month: words[1], day: words[3], time: words[4], year: words[5])
    case 5:  // Sun Nov 16 08:49:37 1994
      return asctime(words[0], month: words[1], day: words[2], time: words[3], year: words[4])
    case 4:  // Sunday, 06-Nov-94 08:49:37 GMT
      guard words[0].last == 0x2C, isDayName(words[0].dropLast(), full: true), words[3].elementsEqual("GMT".utf8)
      else { return nil }
      let date = words[1].split(separator: 0x2D, omittingEmptySubsequences: false)
      guard date.count == 3, let short = number(date[2], digits: 2) else { return nil }
      func inCentury(_ century: Int64) -> Int64? {
        seconds(
          year: century * 100 + short, month: date[1], day: number(date[0], digits: 2),
          time: words[2])
      }
      // "More than 50 years in the future" means the most recent past year with those two digits.
      let fiftyYears: Int64 = 50 * 31_556_952
      let thisYear = 1970 + now / 31_556_952
      let candidates = [1, 0, -1].compactMap { inCentury(thisYear / 100 + $0) }
      return candidates.first { $0 <= now + fiftyYears }
    default: return nil
    }
  }

  /// `Sun, 06 Nov 1994 08:49:37 GMT`: what nearly every server sends, always of this length.
  private static func fixdate(_ text: [UInt8]) -> Int64? {
    guard isDayName(text[..<3], full: false), text[4] == 0x20, text[7] == 0x20, text[11] == 0x20, text[16] == 0x20,
      text[25...].elementsEqual(" GMT".utf8)
    else { return nil }
    return seconds(
      year: number(text[12..<16], digits: 4), month: text[8..<11], day: number(text[5..<7], digits: 2),
      time: text[17..<25])
  }

  private static func asctime(
    _ name: Bytes, month: Bytes, day: Bytes, time: Bytes, year: Bytes
  ) -> Int64? {
    guard isDayName(name, full: false) else { return nil }
    return seconds(
      year: number(year, digits: 4), month: month,
      day: number(day, digits: day.count == 1 ? 1 : 2),
      time: time)
  }

  private typealias Bytes = ArraySlice<UInt8>

  private static let dayNames = [
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
  ].map { Array($0.utf8) }
  private static let monthNames = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ].map { Array($0.utf8) }

  private static func isDayName(_ text: Bytes, full: Bool) -> Bool {
    dayNames.contains { text == (full ? $0[...] : $0[..<3]) }
  }

  private static func number(_ text: Bytes, digits: Int) -> Int64? {
    guard text.count == digits, let value = decimal(text) else { return nil }
    return Int64(value)
  }

  private static func seconds(
    year: Int64?, month: Bytes, day: Int64?, time: Bytes
  ) -> Int64? {
    let start = time.startIndex
    guard let year, year >= 1, let day,
      let index = monthNames.firstIndex(where: { month == $0[...] }),
      time.count == 8, time[start + 2] == 0x3A, time[start + 5] == 0x3A,
      let hour = number(time.prefix(2), digits: 2), hour < 24,
      let minute = number(time[(start + 3)..<(start + 5)], digits: 2), minute < 60,
      let second = number(time.suffix(2), digits: 2), second <= 60  // 60: a leap second
    else { return nil }
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
    let lengths: [Int64] = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard 1...lengths[index] ~= day else { return nil }

    let past = year - 1
    var days = past * 365 + past / 4 - past / 100 + past / 400 - 719_162  // 1970-01-01 is day 0
    days += lengths[..<index].reduce(0, +) + day - 1
    return days * 86_400 + hour * 3_600 + minute * 60 + second
  }
}

/// The `Retry-After` field: a number of seconds or a date (RFC 9110, 10.2.3).
package enum RetryAfter {
  /// - Parameters:
  ///   - sent: the answer's Date field. A date is relative to that, because either clock may be wrong, and the server's
  ///     is one.
  ///   - now: seconds since 1970, to which a date is relative where there is no such field.
  /// - Returns: seconds to wait, 0 for a date that has passed, at most `Int32.max` (the caller has a limit of its own
  ///   anyway); nil if the field is neither form.
  package static func seconds(_ field: String, sent: String? = nil, now: Int64) -> Int? {
    let limit = Int64(Int32.max)
    if !field.isEmpty, field.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) {
      return Int(min(decimal(field.utf8) ?? UInt64(limit), UInt64(limit)))
    }
    guard let date = HTTPDate.parse(field, now: now) else { return nil }
    let sent = sent.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return Int(max(0, min(date - sent, limit)))
  }
}
