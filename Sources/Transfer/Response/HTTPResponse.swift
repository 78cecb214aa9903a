extension Response {
  /// Interprets the head of an HTTP response (RFC 9110). Pure.
  /// - Parameters:
  ///   - url: what answered.
  ///   - now: seconds since 1970, for dates with a two-digit year and for a Retry-After without a Date field.
  package init(_ head: ResponseHead, from url: URLParts, now: Int64) {
    self.init(url: url, content: Self.content(of: head))
    retryAfter = head.first("retry-after").flatMap { RetryAfter.seconds($0, sent: head.first("date"), now: now) }
    let framing = head.framing
    if case .length(let length) = framing { bodyLength = length }
    ending =
      switch framing {
      case .none, .length, .chunked, .invalid: .announced
      case .close: .connection
      case .stream: .stream
      }
    let codings = head.members("content-encoding").filter(ContentCoding.isOne)
    coding = codings.isEmpty ? nil : codings.joined(separator: ", ")
    mediaType = head.mediaType
    isMediaTypeUnclear = mediaType == nil && head.first("content-type") != nil
    if isOfFile, coding == nil { digests = head.statedDigests(isWhole: hasWhole) }
    // What is no date is only compared, and Swift takes different spellings of an accented letter for equal.
    lastModified = head.first("last-modified").flatMap { $0.utf8.allSatisfy { 0x20...0x7E ~= $0 } ? $0 : nil }
    let dispositions = head.values("content-disposition")
    proposedName = dispositions.count == 1 ? ContentDisposition(dispositions[0])?.filename : nil
    let etags = head.values("etag")
    // Two of them, or other than printable ASCII: no validator, and the date is not one instead. Bytes that were no
    // UTF-8 look alike, and Swift takes different spellings of an accented letter for equal. Some servers take a
    // control byte, such as a lone CR, for the end of the line in the next request.
    guard etags.count <= 1, etags.allSatisfy({ $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }) else { return }
    etag = etags.first
    isLastModifiedStrong = Self.isLastModifiedStrong(head, now: now)
  }

  private static func content(of head: ResponseHead) -> Content {
    switch head.status {
    case 200: return .whole
    case 206: return range(of: head)
    case 416:
      guard let range = contentRange(of: head), range.first == nil else { return .nothingThere(size: nil) }
      return .nothingThere(size: range.total)
    case let status: return .refused(.http(status: status, logins: head.loginSchemes))
    }
  }

  private static func range(of head: ResponseHead) -> Content {
    let types = head.values("content-type").map { $0.utf8.map(lowercasedASCII) }
    if types.contains(where: { $0.starts(with: "multipart/byteranges".utf8) }) {
      return .unknownRange("multipart/byteranges for one range")
    }
    guard let range = contentRange(of: head), let first = range.first, let last = range.last else {
      return .unknownRange("no valid Content-Range")
    }
    if case .length(let length) = head.framing, length != last - first + 1 {
      return .unknownRange("Content-Length and Content-Range disagree")
    }
    return .range(first: first, last: last, total: range.total)
  }

  /// The one field that a response may have (RFC 9110, 14.4); nil if there are several, or none that is valid.
  private static func contentRange(of head: ResponseHead) -> ContentRange? {
    let fields = head.values("content-range")
    return fields.count == 1 ? ContentRange(fields[0]) : nil
  }

  /// Last-Modified is at least one second before Date: no second change can hide behind it (RFC 9110, 8.8.2.2).
  private static func isLastModifiedStrong(_ head: ResponseHead, now: Int64) -> Bool {
    guard let modified = head.first("last-modified"), let then = HTTPDate.parse(modified, now: now),
      let date = head.first("date").flatMap({ HTTPDate.parse($0, now: now) })
    else { return false }
    return then < date
  }
}
