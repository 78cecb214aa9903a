/// One request as a `ScriptedServer` received it.
package struct ServerRequest: Sendable, CustomStringConvertible {
  package let method: String
  /// The request target as sent: path and query.
  package let target: String
  package let version: String
  /// Field names as sent; values byte for byte (each byte one scalar, ISO 8859-1), trimmed of blanks.
  package let fields: [(name: String, value: String)]
  /// Which connection of this server it came on, from 1.
  package let connection: Int
  /// The how manieth request for this target it is, from 1.
  package let nth: Int

  /// The values of a field, whatever its name's case.
  package func values(_ name: String) -> [String] {
    fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
  }

  /// The first value of a field.
  package func value(_ name: String) -> String? {
    values(name).first
  }

  /// N of `Range: bytes=N-` or `bytes=N-M`, the only forms that spoolrun sends; nil without a Range or for any other
  /// form.
  package var rangeStart: Int? { range?.start }

  /// M of `Range: bytes=N-M`; nil for any other form.
  package var rangeEnd: Int? { range?.end }

  /// Whether the client waits for the end of the connection (RFC 9112 section 9.3).
  var endsConnection: Bool {
    let options = values("connection").joined(separator: ",").lowercased()
    return options.contains("close") || version == "HTTP/1.0" && !options.contains("keep-alive")
  }

  private var range: (start: Int, end: Int?)? {
    guard let range = value("range"), range.hasPrefix("bytes=") else { return nil }
    let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let start = Int(ends[0]) else { return nil }
    if ends[1].isEmpty { return (start, nil) }
    return Int(ends[1]).map { (start, $0) }
  }

  package var description: String {
    let conditions = fields.filter { ["range", "if-range"].contains($0.name.lowercased()) }
    return (["\(method) \(target)"] + conditions.map { "\($0.name): \($0.value)" }).joined(separator: " | ")
  }

  /// Parses what stands before the empty line; nil if that is no HTTP request.
  init?(head: [UInt8], connection: Int, countTarget: (String) -> Int) {
    let text = latin1(head)
    // Scalars, not Characters: CR LF is one Character.
    let lines = text.unicodeScalars.split(separator: "\n").map { line in
      String(String.UnicodeScalarView(line.last == "\r" ? line.dropLast() : line))
    }
    guard let words = lines.first?.split(separator: " "), words.count == 3 else { return nil }
    method = String(words[0])
    target = String(words[1])
    version = String(words[2])
    fields = lines.dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let value = line[line.index(after: colon)...].drop(while: { $0 == " " || $0 == "\t" })
      return (String(line[..<colon]), String(value))
    }
    self.connection = connection
    nth = countTarget(target)
  }
}

/// Bytes as text, one scalar a byte, so that nothing is lost.
package func latin1(_ bytes: some Sequence<UInt8>) -> String {
  var text = String.UnicodeScalarView()
  for byte in bytes { text.append(Unicode.Scalar(byte)) }
  return String(text)
}

/// The inverse of `latin1(_:)`; scalars beyond 255 become UTF-8.
package func latin1Bytes(_ text: String) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.utf8.count)
  for scalar in text.unicodeScalars {
    if scalar.value < 256 { bytes.append(UInt8(scalar.value)) } else { bytes += String(scalar).utf8 }
  }
  return bytes
}
