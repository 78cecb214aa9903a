internal import Spool

/// Dates as feeds have them.
enum FeedDate {
  /// RFC 822 section 5 as RSS uses it: `Sat, 07 Sep 2002 09:42:31 GMT`, also without the day of the week and the
  /// seconds; nil for anything else.
  static func rss(_ text: String) -> Timestamp? {
    var words = text.split(at: " \t,\r\n")
    if let first = words.first, first.utf8.first.map({ 0x61...0x7A ~= $0 | 0x20 }) == true { words.removeFirst() }
    guard words.count >= 4, let day = number(words[0]), var year = number(words[2]),
      let month = months.firstIndex(of: words[1].prefix(3).lowercasedASCII),
      let time = Self.time(words[3]), let offset = words.count > 4 ? Self.offset(words[4]) : 0
    else { return nil }
    // RFC 822 had two digits.
    if words[2].utf8.count == 2 { year += year < 70 ? 2000 : 1900 }
    return moment(year, month + 1, day, time, offset)
  }

  /// RFC 3339: `2003-12-13T18:30:02.25+01:00`; nil for anything else.
  static func atom(_ text: String) -> Timestamp? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] | 0x20 == 0x74,
      let year = number(text.prefix(4)), let month = number(text.dropFirst(5).prefix(2)),
      let day = number(text.dropFirst(8).prefix(2)), (1...12).contains(month),
      let time = Self.time(text.dropFirst(11).prefix(8))
    else { return nil }
    let rest = text.dropFirst(19)
    let zone = rest.begins(with: ".") ? Substring(rest.utf8.dropFirst().drop { 0x30...0x39 ~= $0 }) : rest
    guard let offset = zone.lowercasedASCII == "z" ? 0 : Self.offset(Substring(zone.split(at: ":").joined())) else {
      return nil
    }
    return moment(year, month, day, time, offset)
  }

  private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

  /// Hours from UTC.
  private static let zones = [
    "UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
    "PDT": -7,
  ]

  private static func number(_ text: Substring) -> Int? {
    guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  /// `09:42` or `09:42:31` in seconds. A leap second counts as the one after it.
  private static func time(_ text: Substring) -> Int? {
    let parts = text.split(at: ":", omittingEmptySubsequences: false).map(number)
    guard (2...3).contains(parts.count), let hours = parts[0], let minutes = parts[1],
      let seconds = parts.count == 3 ? parts[2] : 0, hours < 25, minutes < 60, seconds < 61
    else { return nil }
    return hours * 3600 + minutes * 60 + seconds
  }

  /// `+0100` or a name, in seconds.
  private static func offset(_ text: Substring) -> Int? {
    if let hours = zones[text.uppercased()] { return hours * 3600 }
    guard text.utf8.count == 5, let sign = ["+": 1, "-": -1][String(text.prefix(1))],
      let hours = number(text.dropFirst().prefix(2)), let minutes = number(text.suffix(2)), minutes < 60
    else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }

  private static func moment(_ year: Int, _ month: Int, _ day: Int, _ time: Int, _ offset: Int) -> Timestamp? {
    func padded(_ value: Int, _ width: Int) -> String {
      String(repeating: "0", count: max(0, width - "\(value)".utf8.count)) + "\(value)"
    }
    // Refuses days that do not exist.
    guard let midnight = Timestamp("\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))") else { return nil }
    return midnight + Int64(time - offset)
  }
}
