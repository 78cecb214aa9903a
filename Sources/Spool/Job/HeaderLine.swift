/// A header field to send, and the host to send it to.
package struct HeaderLine: Sendable, Equatable {
  /// The only host to send it to, in lower case; nil for the host of any URL.
  package let host: String?
  /// `Name: value`. Without a value it says that the field is not sent.
  package let text: String
  /// In lower case: fields are the same whatever their case (RFC 9110 section 5.1).
  let name: String

  /// The fields that only the worker may send, in lower case. They decide how a download resumes and where a message
  /// ends, so that another value would corrupt a payload unnoticed.
  package static let reserved: Set<String> = [
    "accept-encoding", "connection", "content-length", "expect", "host", "if-range", "range", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  /// Checks a field line by RFC 9110 section 5: a token, a colon, a value. Control characters are refused for every
  /// line of a job (``JobText``).
  /// - Parameter host: as written behind the `@` of `header@HOST`.
  /// - Throws: what is wrong. It never quotes the value, which may be a secret.
  init(_ text: String, host: String? = nil) throws(InvalidValue) {
    guard let colon = text.utf8.firstIndex(of: 0x3A), colon != text.utf8.startIndex else {
      throw InvalidValue("needs a name, a colon and a value, such as Accept: text/plain")
    }
    let name = text[..<colon]
    guard name.utf8.allSatisfy({ isAlphanumeric($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }) else {
      throw InvalidValue("the name before the colon contains a character that HTTP forbids")
    }
    let field = name.lowercasedASCII
    if Self.reserved.contains(field) { throw InvalidValue("\(field) is set by the worker") }
    if let host {
      guard !host.isEmpty, host.utf8.allSatisfy({ isAlphanumeric($0) || "-._".utf8.contains($0) }) else {
        throw InvalidValue("needs an ASCII host name after the @, without a port, such as header@mirror.example")
      }
      // The line was `header@HOST:PORT: …`.
      if name.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
        throw InvalidValue("must name a host without a port: the field is sent to all ports of the host")
      }
    }
    self.host = host?.lowercasedASCII
    self.text = text
    self.name = field
  }

  package static func == (one: HeaderLine, other: HeaderLine) -> Bool {
    one.host == other.host && one.text.exact == other.text.exact
  }

  /// The same field for this host alone; nil if the host is an IPv6 address, or if the field is for another.
  package func bound(to host: String) -> HeaderLine? {
    if let own = self.host { return own == host ? self : nil }
    do throws(InvalidValue) { return try HeaderLine(text, host: host) } catch { return nil }
  }
}

extension [HeaderLine] {
  /// These lines of a job behind those of `defaults` that they do not replace. A line replaces those of its name for
  /// the same host, and a line for all hosts replaces all of its name.
  func added(to defaults: [HeaderLine]) -> [HeaderLine] {
    defaults.filter { old in !contains { $0.name == old.name && ($0.host == nil || $0.host == old.host) } } + self
  }

  /// The lines for a request to `host`, in lower case. One that names the host replaces those of its name that name
  /// none.
  func lines(for host: String) -> [String] {
    let special = Set(filter { $0.host == host }.map(\.name))
    return filter { $0.host == host || ($0.host == nil && !special.contains($0.name)) }.map(\.text)
  }
}

private func isAlphanumeric(_ byte: UInt8) -> Bool {
  (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
}
