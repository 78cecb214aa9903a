internal import CCurl

/// One of libcurl's easy handles (libcurl-easy(3)) with the memory that its options point to. Used for one transfer at
/// a time, and for several after one another.
final class EasyHandle {
  /// Bytes to receive in one system call; a sink still gets at most 16 KiB at a time.
  static let bufferSize = 512 << 10

  let pointer: UnsafeMutableRawPointer
  /// It was told of a netrc file or of cookies. A reset leaves some of that (curl_easy_reset(3)), so the handle is for
  /// one transfer.
  var hasOwnSecrets = false
  private var fields: UnsafeMutablePointer<curl_slist>?
  /// CURLOPT_ERRORBUFFER(3).
  let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

  /// - Returns: nil if there is no memory.
  init?() {
    guard let pointer = curl_easy_init() else {
      errorBuffer.deallocate()
      return nil
    }
    self.pointer = pointer
    errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  /// The handle is no longer part of a multi handle.
  deinit {
    curl_easy_cleanup(pointer)
    curl_slist_free_all(fields)
    errorBuffer.deallocate()
  }

  /// The header fields of the next request, one a line, in place of those before (CURLOPT_HTTPHEADER(3)).
  /// - Returns: nil if there is no memory.
  func list(_ lines: [String]) -> UnsafeMutablePointer<curl_slist>? {
    curl_slist_free_all(fields)
    fields = nil
    for line in lines {
      guard let longer = curl_slist_append(fields, line) else { return nil }
      fields = longer
    }
    return fields
  }

  func clearError() { errorBuffer[0] = 0 }

  // MARK: What libcurl knows of the transfer (curl_easy_getinfo(3))

  /// May quote a URL, or what the server sent.
  var errorText: String { String(cString: errorBuffer) }

  /// 0 if libcurl does not know it.
  func number(_ info: CURLINFO) -> Int {
    var number = 0
    return ccurl_get_long(pointer, info, &number) == CURLE_OK ? number : 0
  }

  private func offset(_ info: CURLINFO) -> curl_off_t? {
    var offset: curl_off_t = 0
    return ccurl_get_offset(pointer, info, &offset) == CURLE_OK ? offset : nil
  }

  /// Bytes of the body that the server announced; nil if it did not.
  var contentLength: UInt64? { offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T).flatMap { UInt64(exactly: $0) } }

  /// TCP connected, to the proxy if there is one.
  var isConnected: Bool { offset(CURLINFO_CONNECT_TIME_T).map { $0 > 0 } ?? false }

  /// errno(3) of the latest system call on a socket that failed; libcurl never clears it.
  var osErrno: Int { number(CURLINFO_OS_ERRNO) }

  /// The family of the address that the connection leads to, or was to lead to (CURLINFO_PRIMARY_IP(3)).
  var addressFamily: FetchRequest.AddressFamily? {
    var text: UnsafeMutableRawPointer?
    guard ccurl_get_pointer(pointer, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text else { return nil }
    let address = String(cString: text.assumingMemoryBound(to: CChar.self))
    return address.isEmpty ? nil : address.utf8.contains(UInt8(ascii: ":")) ? .ipv6 : .ipv4
  }
}

/// Sets the options of an easy handle, up to the first that fails, and remembers that one's code.
struct EasyOptions {
  private let easy: UnsafeMutableRawPointer
  private(set) var code = CURLE_OK

  init(_ handle: EasyHandle) { easy = handle.pointer }

  mutating func set(_ call: (UnsafeMutableRawPointer) -> CURLcode) { if code == CURLE_OK { code = call(easy) } }

  mutating func long(_ option: CURLoption, _ value: Int) { set { ccurl_set_long($0, option, value) } }
  mutating func flag(_ option: CURLoption, _ value: Bool) { long(option, value ? 1 : 0) }
  mutating func string(_ option: CURLoption, _ value: String) { set { ccurl_set_string($0, option, value) } }
  mutating func bytes(_ option: CURLoption, _ value: [UInt8]) {
    (value + [0]).withUnsafeBytes { bytes in
      set { ccurl_set_string($0, option, bytes.baseAddress?.assumingMemoryBound(to: CChar.self)) }
    }
  }
  mutating func pointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
    set { ccurl_set_pointer($0, option, value) }
  }
  /// - Parameter value: nil if there was no memory for it.
  mutating func list(_ option: CURLoption, _ value: UnsafeMutablePointer<curl_slist>?) {
    set { value == nil ? CURLE_OUT_OF_MEMORY : ccurl_set_list($0, option, value) }
  }
  mutating func receiver(_ option: CURLoption, _ function: @escaping curl_write_callback) {
    set { ccurl_set_receiver($0, option, function) }
  }
  mutating func fail(_ reason: CURLcode) { if code == CURLE_OK { code = reason } }
}
