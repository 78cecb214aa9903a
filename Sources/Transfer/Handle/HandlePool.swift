internal import CCurl

/// Idle easy handles, for the next transfers.
struct HandlePool {
  private static let limit = 16
  private var handles: [EasyHandle] = []

  /// - Returns: nil if there is no memory.
  mutating func take() -> EasyHandle? { handles.popLast() ?? EasyHandle() }

  /// Takes back a handle whose transfer has ended well and is removed from libcurl's multi handle.
  mutating func put(_ handle: EasyHandle, bufferSize: Int) {
    guard handles.count < Self.limit, !handle.hasOwnSecrets else { return }
    curl_easy_reset(handle.pointer)
    // A handle keeps its buffer while others are on its HTTP/2 connection (libcurl 7.88), and from then on refuses
    // another size.
    if ccurl_set_long(handle.pointer, CURLOPT_BUFFERSIZE, bufferSize) == CURLE_OK { handles.append(handle) }
  }
}
