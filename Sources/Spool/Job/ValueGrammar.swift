struct WrittenValue: Sendable {
  let text: String
  /// What follows the `@` in the key, as in `header@HOST`.
  var host: String?
  var line: Int?
}

/// How a key's value is read and written. What ``write`` gives, ``read`` takes for the same value.
struct ValueGrammar<Value: Sendable>: Sendable {
  let read: @Sendable (WrittenValue) throws(InvalidValue) -> Value
  let write: @Sendable (Value) -> WrittenValue
  /// All texts that there are; empty where these are too many.
  var choices: [String] = []

  init(
    read: @escaping @Sendable (WrittenValue) throws(InvalidValue) -> Value,
    write: @escaping @Sendable (Value) -> WrittenValue
  ) { (self.read, self.write) = (read, write) }

  /// - Parameter wanted: what the value has to be, with an example.
  /// - Parameter read: nil for any other text.
  init(
    _ wanted: @autoclosure @escaping @Sendable () -> String, read: @escaping @Sendable (String) -> Value?,
    write: @escaping @Sendable (Value) -> String
  ) {
    self.init(
      read: { (written) throws(InvalidValue) in
        guard let value = read(written.text) else { throw InvalidValue("must be \(wanted())") }
        return value
      }, write: { WrittenValue(text: write($0)) })
  }
}

extension ValueGrammar<JobRequest.Line> {
  static let line = ValueGrammar(
    read: { JobRequest.Line(text: $0.text, number: $0.line ?? 0) }, write: { WrittenValue(text: $0.text) })

  static let outputPath = ValueGrammar(
    read: { (written) throws(InvalidValue) in
      // The URL gives the name below a directory.
      let path = OutputPath.isDirectory(written.text) ? written.text + "x" : written.text
      if let reason = OutputPath.defect(of: path) { throw InvalidValue(reason) }
      return JobRequest.Line(text: written.text, number: written.line ?? 0)
    }, write: { WrittenValue(text: $0.text) })

  static let rootName = ValueGrammar(
    read: { (written) throws(InvalidValue) in
      let isName = OutputPath.defect(of: written.text) == nil && !written.text.utf8.contains(UInt8(ascii: "/"))
      guard isName, !FileName(written.text).isIgnored else {
        throw InvalidValue("must be a name in the spool's directory roots")
      }
      return JobRequest.Line(text: written.text, number: written.line ?? 0)
    }, write: { WrittenValue(text: $0.text) })
}

extension ValueGrammar<String> {
  static let text = ValueGrammar(read: { $0.text }, write: { WrittenValue(text: $0) })

  static let pageURL = ValueGrammar(
    "an http or https URL",
    read: { text in
      let isURL = ["http://", "https://"].contains { scheme in
        text.lowercasedASCII.begins(with: scheme) && text.utf8.count > scheme.utf8.count
      }
      return isURL && !text.utf8.contains(where: isBlank) ? text : nil
    }, write: { $0 })
}

extension ValueGrammar<HeaderLine> {
  static let header = ValueGrammar(
    read: { (written) throws(InvalidValue) in try HeaderLine(written.text, host: written.host) },
    write: { WrittenValue(text: $0.text, host: $0.host) })
}

extension ValueGrammar<UInt64> {
  /// A file's size; an offset is signed (off_t).
  static let fileSize = ValueGrammar("a number of bytes, such as 4294967296", read: { amount($0) }, write: { "\($0)" })

  static let largestSize = ValueGrammar(
    "a number of bytes, such as 500M or 2G", read: { byteCount($0).flatMap { $0 > 0 ? $0 : nil } },
    write: byteCountText)

}

extension ValueGrammar where Value: RawRepresentable<String> {
  /// The name of one of the cases.
  static func choice(_ wanted: String) -> ValueGrammar {
    ValueGrammar(wanted, read: { Value(rawValue: $0) }, write: \.rawValue)
  }
}

extension ValueGrammar<Priority> {
  static let priority: ValueGrammar = {
    var grammar = choice("high, normal or low")
    grammar.choices = Priority.allCases.map(\.rawValue)
    return grammar
  }()
}

extension ValueGrammar<Bool> {
  static let yesOrNo = ValueGrammar(
    "yes or no", read: { ["yes": true, "no": false][$0] }, write: { $0 ? "yes" : "no" })
}

extension ValueGrammar<Int> {
  static func number(_ range: ClosedRange<Int>) -> ValueGrammar {
    ValueGrammar(
      "a number from \(range.lowerBound) to \(range.upperBound)",
      read: { decimal($0).flatMap { Int(exactly: $0) }.flatMap { range.contains($0) ? $0 : nil } }, write: { "\($0)" })
  }
}

extension ValueGrammar {
  static func rule<Inner>(_ key: String, _ inner: ValueGrammar<Inner>) -> ValueGrammar<ServerRule<Inner>>
  where Value == ServerRule<Inner> {
    ValueGrammar<ServerRule<Inner>>(
      read: { (written) throws(InvalidValue) in
        if let host = written.host { try checkHost(host, key) }
        return ServerRule(host: written.host?.lowercasedASCII, value: try inner.read(written))
      }, write: { WrittenValue(text: inner.write($0.value).text, host: $0.host) })
  }
}

extension ValueGrammar<Digest> {
  static func digest(_ algorithm: DigestAlgorithm) -> ValueGrammar {
    ValueGrammar(algorithm.wanted, read: { Digest(algorithm, $0) }, write: { "\($0)" })
  }
}

extension ValueGrammar<Set<DigestAlgorithm>> {
  static let digestNames = ValueGrammar(
    read: { (written) throws(InvalidValue) in
      var names: Set<DigestAlgorithm> = []
      for word in words(written.text) {
        guard let algorithm = DigestAlgorithm(rawValue: String(word)) else {
          throw InvalidValue("must be names of digests, such as sha256 md5")
        }
        guard algorithm.isAvailable else { throw InvalidValue("\(algorithm.rawValue) must be \(algorithm.wanted)") }
        names.insert(algorithm)
      }
      return names
    },
    write: { names in
      WrittenValue(text: DigestAlgorithm.allCases.filter(names.contains).map(\.rawValue).joined(separator: " "))
    })
}

extension ValueGrammar<Timeout> {
  static let timeout = ValueGrammar(
    "an idle time and optionally a total time, from 1s to 365d, such as 60s 7d",
    read: { text in
      let times = words(text).map { duration($0) }
      guard let idle = times.first ?? nil, times.count <= 2, !times.contains(nil) else { return nil }
      return Timeout(idle: idle, total: times.count == 2 ? times[1] : nil)
    },
    write: { ([$0.idle] + ($0.total.map { [$0] } ?? [])).map(durationText).joined(separator: " ") })
}

extension ValueGrammar<MinimumRate> {
  static let minimumRate = ValueGrammar(
    "bytes per second and optionally a time, such as 1k over 5m, or 0 for none",
    read: { text in
      let words = words(text)
      guard let rate = words.first.flatMap({ byteCount($0) }) else { return nil }
      if words.count == 1 { return MinimumRate(bytesPerSecond: rate, seconds: MinimumRate.default.seconds) }
      guard words.count == 3, words[1] == "over", let seconds = duration(words[2]) else { return nil }
      return MinimumRate(bytesPerSecond: rate, seconds: seconds)
    },
    write: { "\(byteCountText($0.bytesPerSecond)) over \(durationText($0.seconds))" })
}
