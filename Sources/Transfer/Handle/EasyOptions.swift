internal import CCurl

/// Sets the options of an easy handle, up to the first that fails, and remembers that one's code.
struct EasyOptions {
  private let easy: UnsafeMutableRawPointer
  private(set) var code = CURLE_OK

  init(_ handle: EasyHandle) { easy = handle.pointer }

  mutating func long(_ option: CURLoption, _ value: Int) {
    if code == CURLE_OK { code = ccurl_set_long(easy, option, value) }
  }
  mutating func flag(_ option: CURLoption, _ value: Bool) { long(option, value ? 1 : 0) }
  mutating func offset(_ option: CURLoption, _ value: curl_off_t) {
    if code == CURLE_OK { code = ccurl_set_offset(easy, option, value) }
  }
  mutating func string(_ option: CURLoption, _ value: String) {
    if code == CURLE_OK { code = ccurl_set_string(easy, option, value) }
  }
  mutating func bytes(_ option: CURLoption, _ value: [UInt8]) {
    guard code == CURLE_OK else { return }
    code = (value + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { ccurl_set_string(easy, option, $0.baseAddress) }
    }
  }
  mutating func pointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
    if code == CURLE_OK { code = ccurl_set_pointer(easy, option, value) }
  }
  /// - Parameter value: nil if there was no memory for it.
  mutating func list(_ option: CURLoption, _ value: UnsafeMutablePointer<curl_slist>?) {
    guard code == CURLE_OK else { return }
    code = value == nil ? CURLE_OUT_OF_MEMORY : ccurl_set_list(easy, option, value)
  }
  mutating func receiver(_ option: CURLoption, _ function: @escaping curl_write_callback) {
    if code == CURLE_OK { code = ccurl_set_receiver(easy, option, function) }
  }
  mutating func debugReceiver(_ function: @escaping curl_debug_callback) {
    if code == CURLE_OK { code = ccurl_set_debug_receiver(easy, function) }
  }
  mutating func openSocket(_ function: @escaping curl_opensocket_callback) {
    if code == CURLE_OK { code = ccurl_set_open_socket(easy, function) }
  }
  mutating func closeSocket(_ function: @escaping curl_closesocket_callback) {
    if code == CURLE_OK { code = ccurl_set_close_socket(easy, function) }
  }
  mutating func prerequest(_ function: @escaping curl_prereq_callback) {
    if code == CURLE_OK { code = ccurl_set_prerequest(easy, function) }
  }
  mutating func progress(_ function: @escaping curl_xferinfo_callback) {
    if code == CURLE_OK { code = ccurl_set_progress(easy, function) }
  }
  mutating func fail(_ reason: CURLcode) { if code == CURLE_OK { code = reason } }
}
