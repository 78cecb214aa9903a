internal import CCurl

/// libcurl, which is loaded when it is first needed: a worker that finds nothing to do ends before libcurl would be
/// loaded.
package enum Libcurl {
  /// Why libcurl cannot be loaded; nil if it is. Swift initializes this once, and other threads wait meanwhile.
  private static let problem: String? = ccurl_load().map { printable(String(cString: $0)) }

  /// Its own set-up and that of its libraries, once in a process (curl_global_init(3)). Only after `problem` is nil.
  private static let globalInit = ccurl_global_init()

  /// Loads libcurl on the first call. Call this before the first URL is parsed: the error then distinguishes a machine
  /// without libcurl from a bad URL.
  package static func load() throws(TransferError) {
    guard let problem else { return }
    throw TransferError(description: "\(CCURL_SONAME) cannot be loaded: \(problem); install libcurl4")
  }

  /// Loads libcurl and sets it up for transfers on the first call; on any thread. Others that call it meanwhile wait
  /// until it is done.
  package static func start() throws(TransferError) {
    try load()
    guard globalInit == CURLE_OK else {
      throw TransferError(description: "libcurl: \(String(cString: curl_easy_strerror(globalInit)))")
    }
  }
}

package struct TransferError: Error, Sendable, CustomStringConvertible {
  /// Printable ASCII, without secrets.
  package let description: String
}

package struct URLProblem: Error, Equatable, Sendable {
  /// Never quotes the text, which may contain secrets.
  package let reason: String
}

/// libcurl's URL parser (libcurl-url(3)).
struct URLHandle: ~Copyable {
  private let handle: OpaquePointer

  init() throws(URLProblem) {
    do throws(TransferError) { try Libcurl.load() } catch { throw URLProblem(reason: error.description) }
    guard let handle = curl_url() else { throw URLProblem(reason: "out of memory") }
    self.handle = handle
  }

  deinit { curl_url_cleanup(handle) }

  /// Parses a part, relative to the current URL (curl_url_set(3)).
  func set(_ part: CURLUPart, _ value: String, allowingSpace: Bool = false) throws(URLProblem) {
    let flags = CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME | (allowingSpace ? CURLU_ALLOW_SPACE : 0)
    let code = curl_url_set(handle, part, value, UInt32(flags))
    guard code == CURLUE_OK else { throw URLProblem(reason: Self.reason(code)) }
  }

  func remove(_ part: CURLUPart) throws(URLProblem) {
    guard curl_url_set(handle, part, nil, 0) == CURLUE_OK else { throw URLProblem(reason: "out of memory") }
  }

  /// The text of a part (curl_url_get(3)); nil if the URL has no such part.
  func part(_ part: CURLUPart, _ flags: Int32 = 0) throws(URLProblem) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    let code = ccurl_url_get(handle, part, &text, UInt32(flags))
    defer { curl_free(text) }
    switch code {
    case CURLUE_OK:
      guard let text else { return nil }
      if let valid = String(validatingCString: text) { return valid }
      // Repaired, it would be another password, which the server refuses without a visible reason.
      if part == CURLUPART_USER || part == CURLUPART_PASSWORD {
        throw URLProblem(reason: "user name or password is not UTF-8")
      }
      return String(cString: text)
    case CURLUE_NO_SCHEME, CURLUE_NO_USER, CURLUE_NO_PASSWORD, CURLUE_NO_OPTIONS, CURLUE_NO_HOST,
      CURLUE_NO_PORT, CURLUE_NO_QUERY, CURLUE_NO_FRAGMENT:
      return nil
    default: throw URLProblem(reason: Self.reason(code))
    }
  }

  func required(_ part: CURLUPart, _ flags: Int32 = 0) throws(URLProblem) -> String {
    guard let text = try self.part(part, flags) else { throw URLProblem(reason: "incomplete URL") }
    return text
  }

  private static func reason(_ code: CURLUcode) -> String {
    switch code {
    case CURLUE_BAD_PORT_NUMBER: "port is not between 1 and 65535"
    case CURLUE_BAD_HOSTNAME, CURLUE_LACKS_IDN: "host name is not valid"
    case CURLUE_BAD_IPV6: "IPv6 address is not valid"
    case CURLUE_NO_HOST: "no host in the URL"
    default: "malformed URL: \(String(cString: curl_url_strerror(code)))"
    }
  }
}
