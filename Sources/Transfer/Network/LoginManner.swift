/// How a login is presented to an HTTP server (RFC 9110, 11).
enum LoginManner {
  /// With the request, by Basic (RFC 7617).
  case atOnce
  /// Only after the server has asked, by the best scheme that it names: Digest (RFC 7616), which does not show the
  /// password, or Basic. libcurl answers the server by itself, within the hop.
  case whenAsked

  /// Over TLS nobody else reads it, and some servers answer 404, or lead to a page, where there is no login.
  init(for scheme: Scheme) { self = scheme.channel == .tls ? .atOnce : .whenAsked }

  /// The other way, if a refusal shows that this one does not fit; nil otherwise.
  /// - Parameter schemes: those that the server names.
  func other(after status: Int, naming schemes: [String]) -> LoginManner? {
    switch self {
    case .atOnce: status == 401 && schemes.contains { lowercasedASCII($0) == "digest" } ? .whenAsked : nil
    case .whenAsked: [401, 403, 404].contains(status) && schemes.isEmpty ? .atOnce : nil
    }
  }

  /// CURLOPT_HTTPAUTH(3), whose values are macros with casts: CURLAUTH_BASIC is 1, CURLAUTH_DIGEST is 2.
  var schemes: Int {
    switch self {
    case .atOnce: 1
    case .whenAsked: 1 | 2
    }
  }
}

extension ResponseHead {
  /// The schemes by which the server takes a login (WWW-Authenticate; RFC 9110, 11.6.1), at most five. Pure.
  var loginSchemes: [String] {
    var schemes: [String] = []
    for member in values("www-authenticate").flatMap(Self.splitOutsideQuotes) {
      let text = trimmed(member)
      let name = text.prefix(while: isTokenByte)
      // `realm="x"` continues the challenge before it.
      let rest = text[name.endIndex...]
      guard 1...20 ~= name.count, rest.isEmpty || isBlank(rest[rest.startIndex]), trimmed(rest).first != 0x3D else {
        continue
      }
      let scheme = String(decoding: name, as: UTF8.self)
      if !schemes.contains(scheme), schemes.count < 5 { schemes.append(scheme) }
    }
    return schemes
  }

  private static func splitOutsideQuotes(_ value: String) -> [ArraySlice<UInt8>] {
    var (isQuoted, isEscaped) = (false, false)
    return Array(value.utf8).split { byte in
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = isQuoted
      }
      return byte == UInt8(ascii: ",") && !isQuoted
    }
  }
}

private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
