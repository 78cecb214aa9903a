/// Status and fields of a final HTTP response; not of a 1xx.
package struct ResponseHead: Sendable {
  /// Three digits as sent.
  package let status: Int
  /// In the order received; names in lower case, values without the blanks around them. Bytes that are no UTF-8 are
  /// U+FFFD; in Location they are percent-encoded.
  package let fields: [(name: String, value: String)]
  /// It came over HTTP/2 or later. libcurl shows no difference between a stream that was reset with NO_ERROR and one
  /// that ended (END_STREAM, RFC 9113, 8.1), unless there is a Content-Length.
  package var isMultiplexed = false

  /// - Parameter fields: names in lower case, values without the blanks around them.
  package init(status: Int, fields: [(name: String, value: String)]) {
    self.status = status
    self.fields = fields
  }

  /// All values of the field `name` (in lower case), one for each occurrence.
  package func values(_ name: String) -> [String] {
    var values: [String] = []
    for field in fields where Self.isSame(field.name, name) { values.append(field.value) }
    return values
  }

  /// The value of the first field `name` (in lower case).
  package func first(_ name: String) -> String? {
    fields.first { Self.isSame($0.name, name) }?.value
  }

  /// Compares lengths first: a response's head is searched for some twenty names, most of which are not in it. Names
  /// are whatever the server sent, so their bytes count, not their characters.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.count == other.utf8.count && one.utf8.elementsEqual(other.utf8)
  }

  /// The members of the list that all fields `name` (in lower case) form, without the blanks around them, empty members
  /// included (RFC 9110, 5.6.1).
  func members(_ name: String) -> [String] {
    values(name).flatMap { value in
      value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        .map { String(decoding: trimmed($0), as: UTF8.self) }
    }
  }

  /// Content-Type without its parameters, in lower case; nil if there is none, or several, or one longer than 127
  /// bytes.
  var mediaType: String? {
    let types = values("content-type")
    guard types.count == 1 else { return nil }
    let type = trimmed(types[0].utf8.prefix { $0 != UInt8(ascii: ";") })
    guard 1...127 ~= type.count, type.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
    return String(decoding: type.map(lowercasedASCII), as: UTF8.self)
  }
}

extension ResponseHead {
  /// How the end of the body is found (RFC 9112, 6.3), for a GET.
  package enum Framing: Equatable {
    /// There is no body.
    case none
    /// Bytes of the body.
    case length(UInt64)
    /// A transfer coding, whose last chunk is the end.
    case chunked
    /// The connection is closed at the end; a body that was cut may look the same.
    case close
    /// The stream ends; a stream that was cut may look the same.
    case stream
    /// The reason why the end cannot be found.
    case invalid(String)
  }

  /// What shows the end of the body (RFC 9112 section 6.3).
  package var framing: Framing {
    if status == 204 || status == 304 { return .none }
    let codings = members("transfer-encoding").filter { !$0.isEmpty }.map { lowercasedASCII($0) }
    if !codings.isEmpty {
      return codings == ["chunked"] ? .chunked : .invalid("a transfer coding that was not requested")
    }
    // A list of equal members is one value (RFC 9112, 6.3, 5.). Checked here, as libcurl takes the last member, and
    // ignores a length that is too large for it.
    let lengths = members("content-length")
    guard let text = lengths.first else { return isMultiplexed ? .stream : .close }
    guard lengths.allSatisfy({ $0.utf8.elementsEqual(text.utf8) }) else {
      return .invalid("contradictory Content-Length fields")
    }
    guard let length = decimal(text.utf8), length <= UInt64(Int64.max) else {
      return .invalid("Content-Length is not a valid number")
    }
    return .length(length)
  }
}
