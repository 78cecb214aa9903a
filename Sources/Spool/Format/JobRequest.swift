/// The keys with which a job says what it wants (spool.5, JOB FORMAT).
package enum RequestKey: String, CaseIterable, Sendable {
  case url, output, size, crc32, header, overwrite, attempts, expires, timeout
  case maxSize = "max-size"
  case limitRate = "limit-rate"
  case minRate = "min-rate"
  case connections

  /// Keys that make sense for one job only and so not in `defaults`.
  var isPerJob: Bool {
    switch self {
    case .url, .output, .size, .crc32: true
    default: false
    }
  }
}

/// A header field to send, and to whom.
package struct HeaderLine: Sendable, Equatable {
  /// The only host to send it to, in lower case; nil for the host of any URL.
  package let host: String?
  /// `Name: value`.
  package let text: String
}

/// What a server has to bring, or its transfer counts as stalled.
package struct MinimumRate: Sendable, Equatable {
  /// Bytes per second on average; 0 for no minimum.
  package let bytesPerSecond: UInt64
  /// Seconds that the average is taken over.
  package let seconds: Int

  package static let `default` = MinimumRate(bytesPerSecond: 1024, seconds: 300)
}

/// What a job asks for; nil where it says nothing.
package struct JobRequest: Sendable, Equatable {
  /// A value with the number of the line that it stands on, for records.
  package struct Line: Sendable, Equatable {
    package let text: String
    package let number: Int
  }

  /// Mirrors of one file, in order of preference.
  package var urls: [Line] = []
  /// Relative to the output root.
  package var output: Line?
  /// Bytes of the whole payload.
  package var size: UInt64?
  package var crc32: Checksum?
  package var headers: [HeaderLine] = []
  package var overwrite: Bool?
  package var attempts: Int?
  package var expires: Timestamp?
  /// Seconds without a byte after which a transfer counts as stalled.
  package var idleTimeout: Int?
  /// Seconds for one request in all; with several connections each piece has its own.
  package var totalTimeout: Int?
  /// The most bytes that the payload may have.
  package var maxSize: UInt64?
  /// Bytes per second.
  package var limitRate: UInt64?
  package var minRate: MinimumRate?
  /// How many connections to fetch over.
  package var connections: Int?

  package init() {}

  package static let defaultAttempts = 12
  package static let defaultIdleTimeout = 60
  package static let defaultTotalTimeout = 7 * 86_400
  package static let connectionRange = 1...32

  /// This request with `defaults` where it says nothing itself.
  package func inheriting(_ defaults: JobRequest) -> JobRequest {
    var result = self
    if headers.isEmpty { result.headers = defaults.headers }
    result.overwrite = overwrite ?? defaults.overwrite
    result.attempts = attempts ?? defaults.attempts
    result.expires = expires ?? defaults.expires
    result.idleTimeout = idleTimeout ?? defaults.idleTimeout
    // One key gives both.
    if idleTimeout == nil { result.totalTimeout = defaults.totalTimeout }
    result.maxSize = maxSize ?? defaults.maxSize
    result.limitRate = limitRate ?? defaults.limitRate
    result.minRate = minRate ?? defaults.minRate
    result.connections = connections ?? defaults.connections
    return result
  }

  /// The `Name: value` lines for a request to `host`.
  /// - Parameter host: in lower case.
  package func headers(for host: String) -> [String] {
    headers.filter { $0.host == nil || $0.host == host }.map(\.text)
  }

  /// ``minRate``, or by default one that grants a server as much silence as the idle time does; nil for any rate.
  package var effectiveMinimumRate: MinimumRate? {
    let standard = MinimumRate.default
    let rate =
      minRate
      ?? MinimumRate(
        bytesPerSecond: standard.bytesPerSecond, seconds: max(standard.seconds, idleTimeout ?? Self.defaultIdleTimeout))
    return rate.bytesPerSecond > 0 ? rate : nil
  }
}

/// What is wrong with a job or with `defaults`, and where.
package struct Defect: Error, Sendable, Equatable, CustomStringConvertible {
  /// Counted from 1; nil when it concerns the whole file.
  package let line: Int?
  /// Says what to do about it; free of control bytes and of header values.
  package let reason: String

  package init(line: Int?, reason: String) {
    self.line = line
    self.reason = reason
  }

  package var description: String { line.map { "line \($0): \(reason)" } ?? reason }
}

extension JobRequest {
  /// Takes one `key: value` or `key@host: value` in.
  mutating func set(_ key: RequestKey, of host: String? = nil, _ value: String, line: Int) throws(Defect) {
    func defect(_ reason: String) -> Defect {
      Defect(line: line, reason: "\(key.rawValue): \(reason)")
    }
    func once(_ isSet: Bool) throws(Defect) {
      if isSet { throw defect("given a second time") }
    }
    if value.isEmpty { throw defect("has no value") }
    switch key {
    case .url:
      urls.append(Line(text: value, number: line))
    case .output:
      try once(output != nil)
      if let reason = OutputPath.defect(of: value) { throw defect(reason) }
      output = Line(text: value, number: line)
    case .size:
      try once(size != nil)
      // A file offset is signed (off_t).
      guard let number = decimal(value), number <= UInt64(Int64.max) else {
        throw defect("wants a number of bytes, such as 4294967296")
      }
      size = number
    case .crc32:
      try once(crc32 != nil)
      guard let sum = Checksum(value) else {
        throw defect("wants 8 hexadecimal digits, such as 1c291ca3")
      }
      crc32 = sum
    case .header:
      try Self.checkHeader(value, defect)
      if let host, host.isEmpty || !host.utf8.allSatisfy(Self.isHostByte) {
        throw defect("wants a host name in ASCII behind the @, without a port, such as header@mirror.example")
      }
      if host != nil, value.prefix(while: { $0 != ":" }).allSatisfy(\.isNumber) {
        throw defect("names a host without a port: it is sent to every port of it")
      }
      headers.append(HeaderLine(host: host?.lowercased(), text: value))
    case .overwrite:
      try once(overwrite != nil)
      switch value {
      case "yes": overwrite = true
      case "no": overwrite = false
      default: throw defect("wants yes or no")
      }
    case .attempts:
      try once(attempts != nil)
      guard let number = decimal(value), (1...1000).contains(number) else {
        throw defect("wants a number from 1 to 1000")
      }
      attempts = Int(number)
    case .expires:
      try once(expires != nil)
      guard let moment = Timestamp(value) else {
        throw defect("wants a date in UTC, such as 2026-12-01T00:00:00Z")
      }
      expires = moment
    case .timeout:
      try once(idleTimeout != nil)
      let parts = value.split(whereSeparator: { $0 == " " || $0 == "\t" })
      guard parts.count <= 2, let idle = duration(parts[0]), let total = parts.count == 2 ? duration(parts[1]) : -1
      else {
        throw defect("wants an idle and perhaps a total time from 1s to 365d, such as 60s 7d")
      }
      idleTimeout = idle
      if parts.count == 2 { totalTimeout = total }
    case .maxSize:
      try once(maxSize != nil)
      guard let bytes = byteCount(value), bytes > 0 else { throw defect("wants a number of bytes, such as 500M or 2G") }
      maxSize = bytes
    case .limitRate:
      try once(limitRate != nil)
      guard let rate = byteCount(value), rate >= 1024 else {
        throw defect("wants bytes a second, 1k at least, such as 500k or 2M")
      }
      limitRate = rate
    case .minRate:
      try once(minRate != nil)
      guard let rate = MinimumRate(value) else {
        throw defect("wants bytes a second and perhaps a time, such as 1k over 5m, or 0 for none")
      }
      minRate = rate
    case .connections:
      try once(connections != nil)
      guard let number = decimal(value).flatMap({ Int(exactly: $0) }), Self.connectionRange.contains(number) else {
        throw defect("wants a number from 1 to 32")
      }
      connections = number
    }
  }

  /// The worker's resume decision, and where a message ends, stand on these: a job's would break them in silence.
  private static let ownHeaders = [
    "accept-encoding", "connection", "content-length", "expect", "host", "if-range", "range", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  private static func isHostByte(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
      || "-._".utf8.contains(byte)
  }

  /// A field line by RFC 9110 section 5: a token, a colon, no control characters. The value stays out of every message.
  private static func checkHeader(_ value: String, _ defect: (String) -> Defect) throws(Defect) {
    guard let colon = value.utf8.firstIndex(of: 0x3A), colon != value.utf8.startIndex else {
      throw defect("wants a name, a colon and a value, such as Accept: text/plain")
    }
    let tokenMarks = Array("!#$%&'*+-.^_`|~".utf8)
    let name = value.utf8[..<colon]
    guard
      name.allSatisfy({ byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || tokenMarks.contains(byte)
      })
    else { throw defect("the name before the colon holds a character that HTTP forbids there") }
    let lower = String(value[..<colon]).lowercased()
    if ownHeaders.contains(lower) { throw defect("\(lower) is the worker's own to send") }
  }
}

extension MinimumRate {
  /// `1k over 5m`, `1k` or `0`.
  init?(_ text: String) {
    let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" })
    guard let rate = words.first.flatMap({ byteCount($0) }) else { return nil }
    switch words.count {
    case 1: self.init(bytesPerSecond: rate, seconds: Self.default.seconds)
    case 3:
      guard words[1] == "over", let seconds = duration(words[2]) else { return nil }
      self.init(bytesPerSecond: rate, seconds: seconds)
    default: return nil
    }
  }
}

/// Digits only, no sign, no overflow.
func decimal(_ text: some StringProtocol) -> UInt64? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return UInt64(text)
}

/// A number of bytes, with k, M, G or T behind it for powers of 1024 as curl and wget count them.
package func byteCount(_ text: some StringProtocol) -> UInt64? {
  var digits = Substring(text)
  var scale: UInt64 = 1
  if let last = digits.last, let power = ["k": 10, "m": 20, "g": 30, "t": 40][last.lowercased()] {
    scale = 1 << UInt64(power)
    digits = digits.dropLast()
  }
  guard let number = decimal(digits) else { return nil }
  let (bytes, overflow) = number.multipliedReportingOverflow(by: scale)
  return overflow || bytes > UInt64(Int64.max) ? nil : bytes
}

/// `90`, `90s`, `5m`, `2h`, `7d` in seconds, from 1 s to 365 days.
func duration(_ text: some StringProtocol) -> Int? {
  var digits = Substring(text)
  var unit: UInt64 = 1
  if let scale = ["s": UInt64(1), "m": 60, "h": 3600, "d": 86_400][String(digits.suffix(1))] {
    unit = scale
    digits = digits.dropLast()
  }
  guard let number = decimal(digits) else { return nil }
  let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
  guard !overflow, (1...31_536_000).contains(seconds) else { return nil }
  return Int(seconds)
}
