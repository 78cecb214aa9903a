internal import CCurl

/// libcurl, which is loaded when it is first needed: a worker that finds nothing to do ends before libcurl would be
/// loaded.
package enum Libcurl {
  /// Why libcurl cannot be loaded; nil if it is. Swift initializes this once, and other threads wait meanwhile.
  private static let problem: String? = ccurl_load().map { printable(String(cString: $0)) }

  /// Loads libcurl on the first call. Call this before the first URL is parsed: the error then distinguishes a machine
  /// without libcurl from a bad URL.
  /// - Throws: what the dynamic linker reports (dlopen(3)).
  package static func load() throws(TransferError) {
    guard let problem else { return }
    throw TransferError(description: "\(CCURL_SONAME) cannot be loaded: \(problem); install libcurl4")
  }
}

/// The engine could not be set up.
package struct TransferError: Error, Sendable, CustomStringConvertible {
  /// Printable ASCII, without secrets.
  package let description: String
}
