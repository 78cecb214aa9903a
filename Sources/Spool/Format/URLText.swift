/// The parts of a text that should be a URL, for those who show or compare it. They take it as it is, and need no
/// libcurl. Pure.
package struct URLText: Sendable {
  /// With `://` at its end, or `//` alone; empty where the text has neither.
  package let scheme: Substring
  /// Host and port, without user name and password.
  package let host: Substring
  /// From the slash behind the host up to the query.
  package let path: Substring
  /// All before query and fragment. With a user name and a password, if there are any: only to be compared.
  package let place: Substring

  /// - Parameter text: of any form.
  package init(_ text: String) {
    place = text.prefix(before: "?#")
    let name = place.prefix(before: ":/@")
    let behind = place[name.endIndex...]
    let mark = behind.begins(with: "://") ? 3 : place.begins(with: "//") ? 2 : 0
    let rest = mark > 0 ? behind.dropFirstBytes(mark) : place[...]
    scheme = place[..<rest.startIndex]
    let authority = rest.prefix(before: "/")
    let login = authority.utf8.lastIndex(of: UInt8(ascii: "@"))
    let named = login.map { authority[$0...].dropFirstBytes() } ?? authority
    let isClear = login != nil || mark == 3 && !named.isEmpty && Self.mayBeHost(named)
    if !isClear, text.utf8.contains(UInt8(ascii: "@")) {
      // A slash too many or too few, or an unescaped one in a password: it is not clear where the password ends.
      (host, path) = ("(malformed)", "")
    } else {
      // What is no port may be a password whose host is missing.
      host = Self.mayBeHost(named) ? named : named.prefix(before: ":%")
      path = rest[authority.endIndex...]
    }
  }

  /// Whether it has no escapes, and what follows the first colon can be a port. An IPv6 address is in brackets.
  private static func mayBeHost(_ authority: Substring) -> Bool {
    if authority.begins(with: "[") { return true }
    let port = authority.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst()
    return port.allSatisfy { 0x30...0x39 ~= $0 } && !authority.utf8.contains(UInt8(ascii: "%"))
  }

  /// What follows the last slash of the path; nil where that is nothing.
  package var lastName: Substring? {
    path.split(at: "/", omittingEmptySubsequences: false).last.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// A URL without user name, password and query, which may be secret, for those who show it and need none of its parts.
package func shownURL(_ url: String) -> String {
  let parts = URLText(url)
  return "\(parts.scheme)\(parts.host)\(parts.path)"
}
