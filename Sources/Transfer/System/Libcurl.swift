internal import CCurl

/// libcurl, which is loaded when it is first needed: a worker that finds nothing to do ends before libcurl would be
/// loaded.
package enum Libcurl {
  /// Why libcurl cannot be loaded; nil if it is. Swift initializes this once, and other threads wait meanwhile.
  private static let problem: String? = ccurl_load().map { printable(String(cString: $0)) }

  /// Its own set-up and that of its libraries, once in a process (curl_global_init(3)). Only after `problem` is nil.
  private static let globalInit = curl_global_init(ccurl_global_default())

  /// Loads libcurl on the first call. Call this before the first URL is parsed: the error then distinguishes a machine
  /// without libcurl from a bad URL.
  /// - Throws: what the dynamic linker reports (dlopen(3)).
  package static func load() throws(TransferError) {
    guard let problem else { return }
    throw TransferError(description: "\(CCURL_SONAME) cannot be loaded: \(problem); install libcurl4")
  }

  /// Loads libcurl and sets it up for transfers on the first call; on any thread. Others that call it meanwhile wait
  /// until it is done.
  /// - Throws: as ``load()``; what libcurl reports.
  package static func start() throws(TransferError) {
    try load()
    guard globalInit == CURLE_OK else {
      throw TransferError(description: "libcurl: \(String(cString: curl_easy_strerror(globalInit)))")
    }
  }
}

/// The engine could not be set up.
package struct TransferError: Error, Sendable, CustomStringConvertible {
  /// Printable ASCII, without secrets.
  package let description: String
}
