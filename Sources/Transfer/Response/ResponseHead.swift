/// Status and fields of a final response: no 1xx, no redirect that was followed.
package struct ResponseHead: Sendable {
  /// Three digits as sent. FTP and SFTP have none: there it is 200, or 206 for data from an offset, or the
  /// HTTP status that says the same as the server's refusal.
  package let status: Int
  /// In the order received; names in lower case, values without the blanks around them. Bytes that are no
  /// UTF-8 come as U+FFFD.
  package let fields: [(name: String, value: String)]
  /// Scheme of the URL that answered, in lower case: `http`, `https`, `ftp`, …
  package let scheme: String
  /// The URL that answered, after all redirects; nil where a test made the head.
  package var url: URLParts?
  /// It came over HTTP/2 or later. libcurl tells a stream that was reset with NO_ERROR from one that ended (END_STREAM, RFC 9113 section 8.1) by
  /// nothing but a Content-Length.
  package var isMultiplexed = false

  package init(status: Int, fields: [(name: String, value: String)], scheme: String) {
    self.status = status
    self.fields = fields
    self.scheme = scheme
  }

  /// All values of the field `name` (in lower case), one an occurrence.
  package func values(_ name: String) -> [String] {
    fields.filter { $0.name == name }.map(\.value)
  }

  /// The value of the first field `name` (in lower case).
  package func first(_ name: String) -> String? {
    fields.first { $0.name == name }?.value
  }

  /// The members of the list that all fields `name` (in lower case) make up, without the blanks around them; empty ones among them
  /// (RFC 9110, 5.6.1).
  package func members(_ name: String) -> [String] {
    values(name).flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).map(trimmed) }
  }

  /// Content-Type without its parameters, in lower case; nil where there is none, or several.
  package var mediaType: String? {
    let types = values("content-type")
    guard types.count == 1, let type = types[0].split(separator: ";").first.map(trimmed), !type.isEmpty,
      type.utf8.allSatisfy({ 0x21...0x7E ~= $0 }), type.utf8.count <= 127
    else { return nil }
    return type.lowercased()
  }

  /// FTP and SFTP only have their say put in HTTP's terms.
  package var isHTTP: Bool { URLParts.isHTTP(scheme) }
}

extension ResponseHead {
  /// How the end of the body is found (RFC 9112, 6.3; one request method only, GET).
  package enum Framing: Equatable {
    case none
    case length(UInt64)
    /// A transfer coding, whose last chunk is the end.
    case chunked
    /// Till the connection is closed, which a cut one may look like.
    case close
    /// Till the stream ends, which a stream that was cut looks like.
    case stream
    /// The reason why the end cannot be found.
    case invalid(String)
  }

  package var framing: Framing {
    if status == 204 || status == 304 { return .none }
    let codings = members("transfer-encoding").filter { !$0.isEmpty }.map { $0.lowercased() }
    if !codings.isEmpty {
      return codings == ["chunked"] ? .chunked : .invalid("a transfer coding that nobody asked for")
    }
    // A list with equal members is one value (RFC 9112, 6.3, 5.); libcurl takes whatever comes last, and takes a
    // length that it cannot hold for none at all, so this is looked at here.
    let lengths = members("content-length")
    guard let text = lengths.first else { return isMultiplexed ? .stream : .close }
    guard lengths.allSatisfy({ $0 == text }) else {
      return .invalid("contradictory Content-Length fields")
    }
    guard let length = decimal(text.utf8), length <= UInt64(Int64.max) else {
      return .invalid("Content-Length is no number that fits")
    }
    return .length(length)
  }
}

/// Without the blanks and tabs around it (OWS, RFC 9110, 5.6.3).
func trimmed(_ text: some StringProtocol) -> String {
  let blank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
  let bytes = text.utf8.drop(while: blank)
  return String(decoding: bytes.reversed().drop(while: blank).reversed(), as: UTF8.self)
}
