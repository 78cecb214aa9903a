internal import CCurl

/// FTP and SFTP: there is no head. The first byte of the body shows that the file is being sent, and libcurl knows its
/// size.
struct FileBackend: Backend {
  private let url: URLParts
  /// The first byte asked for.
  private let offset: UInt64
  let framing: ResponseHead.Framing? = nil

  init(url: URLParts, offset: UInt64) {
    self.url = url
    self.offset = offset
  }

  func take(line: UnsafeRawBufferPointer, from handle: EasyHandle) -> BackendEvent { .nothing }

  func beginsAgain() -> Bool { false }

  func beginBody(of handle: EasyHandle) -> BackendEvent { .response(body(of: handle)) }

  private func body(of handle: EasyHandle) -> Response {
    let length = handle.contentLength
    var response = Response(url: url, content: content(length: length))
    response.bodyLength = length
    response.ending = length == nil ? .reply : .announced
    return response
  }

  /// - Parameter length: bytes that libcurl expects, from ``offset`` on; nil if the server has no SIZE (RFC 3659, 4).
  private func content(length: UInt64?) -> Response.Content {
    guard offset > 0 else { return .whole }
    guard let length, length > 0 else { return .unknownRange("the size of the file is not known") }
    let end = offset + length
    return .range(first: offset, last: end - 1, total: end)
  }

  func response(at code: CURLcode, of handle: EasyHandle) -> Response? {
    let content: Response.Content
    switch code {
    case CURLE_OK:
      guard offset > 0 else { return body(of: handle) }
      // libcurl asks for nothing if the offset is the file's size.
      content = .nothingThere(size: offset)
    // The file is shorter, or the server cannot start at an offset.
    case CURLE_BAD_DOWNLOAD_RESUME, CURLE_FTP_COULDNT_USE_REST: content = .nothingThere(size: nil)
    case CURLE_LOGIN_DENIED: content = .refused(.login)
    case CURLE_REMOTE_ACCESS_DENIED: content = .refused(.access)
    case CURLE_REMOTE_FILE_NOT_FOUND: content = .refused(.noSuchFile)
    case CURLE_FTP_COULDNT_RETR_FILE: content = .refused(.unavailable)
    default: return nil
    }
    return Response(url: url, content: content)
  }
}
