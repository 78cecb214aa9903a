/// The header fields of a request.
package enum RequestFields {
  /// Why `line` is no `Name: value` (RFC 9110, 5.1 and 5.5); nil if it is one. Never quotes the value. The caller
  /// decides which names are allowed.
  package static func problem(in line: String) -> String? {
    guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else {
      return "header has no colon"
    }
    let name = line.utf8[..<colon]
    guard !name.isEmpty, name.allSatisfy(isTokenByte) else { return "header name is not a valid token" }
    guard isFieldValue(String(line[line.utf8.index(after: colon)...])) else {
      return "header value has a control character"
    }
    return nil
  }

  /// The lines for libcurl (CURLOPT_HTTPHEADER(3)).
  static func lines(for request: FetchRequest, withCredentials: Bool) -> [String] {
    var lines = ["Accept-Encoding: identity"]
    // Not CURLOPT_RANGE or CURLOPT_RESUME_FROM_LARGE: libcurl would judge the answer, which the sink does.
    if let start = request.rangeStart {
      lines.append("Range: bytes=\(start)-\(request.rangeEnd.map { "\($0)" } ?? "")")
    }
    if let validator = request.ifRange { lines.append("If-Range: \(validator)") }
    lines += request.conditions
    // libcurl takes "Name:" for a field that it must not send (CURLOPT_HTTPHEADER(3)).
    return withCredentials ? lines + request.headers : lines
  }

  /// No control character but the tab (RFC 9110, 5.5).
  static func isFieldValue(_ text: String) -> Bool {
    text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }
  }

}

/// A byte of a token (RFC 9110, 5.6.2).
func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "a")...UInt8(ascii: "z"):
    true
  default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
  }
}
