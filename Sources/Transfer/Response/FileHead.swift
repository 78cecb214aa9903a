internal import CCurl

/// FTP and SFTP, which know no heads.
extension Exchange {
  func fileHead() -> ResponseHead {
    let start = request.rangeStart ?? 0
    var fields: [(name: String, value: String)] = []
    if let easy {
      var length: curl_off_t = -1
      if ccurl_get_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK, length >= 0 {
        fields.append(("content-length", "\(length)"))
        let end = start + UInt64(length)
        if start > 0, length > 0 {
          fields.append(("content-range", "bytes \(start)-\(end - 1)/\(end)"))
        }
      }
    }
    return ResponseHead(status: start > 0 ? 206 : 200, fields: fields, scheme: url.scheme)
  }

  /// The end of an FTP or SFTP transfer without a body, said as HTTP would; nil if `code` is another failure.
  func bodilessHead(_ code: CURLcode) -> ResponseHead? {
    func refusal(_ status: Int, _ fields: [(name: String, value: String)] = []) -> ResponseHead {
      ResponseHead(status: status, fields: fields, scheme: url.scheme)
    }
    switch code {
    case CURLE_OK:
      guard let start = request.rangeStart, start > 0 else { return fileHead() }
      // libcurl asks for nothing when the offset is the file's length.
      return refusal(416, [("content-range", "bytes */\(start)")])
    // Either says that there is no going on from there.
    case CURLE_BAD_DOWNLOAD_RESUME, CURLE_FTP_COULDNT_USE_REST: return refusal(416)
    case CURLE_LOGIN_DENIED: return refusal(401)
    case CURLE_REMOTE_ACCESS_DENIED: return refusal(403)
    case CURLE_REMOTE_FILE_NOT_FOUND: return refusal(404)
    case CURLE_FTP_COULDNT_RETR_FILE: return refusal(503)
    default: return nil
    }
  }
}
