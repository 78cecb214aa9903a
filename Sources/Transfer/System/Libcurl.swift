internal import CCurl

/// libcurl, which is loaded when the first URL is there: a worker that finds nothing to do ends sooner than it would be loaded.
package enum Libcurl {
  /// Why it cannot be loaded; nil when it is. The runtime lets one thread find out and the others wait.
  private static let problem: String? = ccurl_load().map { printable(String(cString: $0)) }

  /// Loads it on the first call. Whoever is to fetch calls this first, to tell a machine without libcurl from a bad URL.
  /// - Throws: what the dynamic linker says.
  package static func load() throws(TransferError) {
    guard let problem else { return }
    throw TransferError(description: "\(CCURL_SONAME) cannot be loaded: \(problem); install libcurl4")
  }
}

/// The engine could not be set up.
package struct TransferError: Error, Sendable, CustomStringConvertible {
  package let description: String
}

/// Backslash escapes for everything but printable ASCII: texts of libcurl and OpenSSL may quote what a server sent.
func printable(_ text: String) -> String {
  guard !text.utf8.allSatisfy({ 0x20...0x7e ~= $0 }) else { return text }
  return text.utf8.reduce(into: "") { result, byte in
    if 0x20...0x7e ~= byte {
      result.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      result += byte < 16 ? "\\x0" : "\\x"
      result += String(byte, radix: 16)
    }
  }
}
