/// What a server answered, in terms that HTTP, FTP and SFTP share. Known before the first byte of the body.
package struct Response: Sendable {
  package enum Content: Sendable, Equatable {
    /// The file from its first byte to its last: HTTP's 200, FTP without REST.
    case whole
    /// The bytes `first` to `last`, itself included, of `total`; nil if the server did not say: HTTP's 206, or a 200
    /// that says so.
    case range(first: UInt64, last: UInt64, total: UInt64?)
    /// A part of the file, but the response does not say which: why.
    case unknownRange(String)
    /// Nothing, as the file has no bytes from the offset asked for on. `size` of the file; nil if the server did not
    /// say or contradicted itself: HTTP's 416.
    case nothingThere(size: UInt64?)
    /// Nothing, as the server does not send the file.
    case refused(Refusal)
  }

  /// Why a response has no bytes of the file.
  package enum Refusal: Sendable, Equatable {
    /// The status, and the schemes by which the server takes a login, if it says so.
    case http(status: Int, logins: [String])
    /// FTP and SFTP refused the login.
    case login
    /// FTP and SFTP: the login may not read the file.
    case access
    case noSuchFile
    /// FTP: the server could not send the file.
    case unavailable
  }

  /// How the end of the body is found, and so what a body that was cut looks like.
  package enum Ending: Sendable, Equatable {
    /// By a length or a last chunk: a body that was cut is an error.
    case announced
    /// By the end of the connection: a body that was cut may look whole.
    case connection
    /// By the server's reply that all is sent (FTP's 226); the length is not known before.
    case reply
  }

  package let url: URLParts
  package let content: Content
  /// Bytes of the body; nil if the server did not say.
  package var bodyLength: UInt64?
  package var ending = Ending.announced
  /// The content codings other than `identity`, in a list with commas: the body is not the file itself, unless the file
  /// is stored in this form.
  package var coding: String?
  /// The body is delivered without its ``coding``, so its length is not known.
  package var isDecoded = false
  /// As sent; nil if there is none, several, or one with other bytes than printable ASCII.
  package var etag: String?
  package var lastModified: String?
  /// ``lastModified`` is a strong validator (RFC 9110, 8.8.2.2).
  package var isLastModifiedStrong = false
  /// The server says that it sends parts of the file (RFC 9110, 14.3), or has sent one.
  package var takesRanges = false
  /// Seconds that the server asks to wait before the next request (RFC 9110, 10.2.3), whatever its status.
  package var retryAfter: Int?
  /// The media type in lower case, without its parameters.
  package var mediaType: String?
  /// What the server says of the type is not one type, so ``mediaType`` is nil.
  package var isMediaTypeUnclear = false
  /// Digests of the whole file, at most one by each algorithm.
  package var digests: [StatedDigest] = []

  /// The file name that the server proposes (Content-Disposition): a stranger's text, for a person who asks for it. No
  /// download ever uses it.
  package var proposedName: String?

  package init(url: URLParts, content: Content) { (self.url, self.content) = (url, content) }

  /// What the body has of the file; nil for nothing, or nobody knows what. The end is nil if the server does not
  /// announce it.
  private var extent: (end: UInt64?, isWhole: Bool)? {
    switch content {
    case .whole: (bodyLength, true)
    // A range counts the bytes before they are decoded.
    case .range(let first, let last, let total): (isDecoded ? nil : last + 1, first == 0 && last + 1 == total)
    case .unknownRange, .nothingThere, .refused: nil
    }
  }

  /// Whether the body is the file from its first byte to its last; also as a 206, which some servers always send.
  package var isWhole: Bool { extent?.isWhole ?? false }

  /// Where the body ends in the file, as the server announces it; nil if it does not.
  package var statedEnd: UInt64? { extent?.end }

  /// Interprets the head of an HTTP response (RFC 9110). Pure.
  /// - Parameter now: seconds since 1970, for dates with a two-digit year and for a Retry-After without a Date field.
  package init(_ head: ResponseHead, from url: URLParts, now: Int64) {
    self.init(url: url, content: Self.content(of: head))
    retryAfter =
      head.first("retry-after").flatMap { RetryAfter.seconds($0, sent: head.first("date"), now: now) }
      ?? head.quotaReset(now: now)
    takesRanges = head.members("accept-ranges").contains { lowercasedASCII($0) == "bytes" }
    if case .range = content { takesRanges = true }
    let framing = head.framing
    if case .length(let length) = framing { bodyLength = length }
    if framing == .close { ending = .connection }
    // Their names, and no more of them than make sense: the text goes into logs and records.
    let codings = head.members("content-encoding").filter(Self.isCoding).prefix(4).map {
      String(Substring($0.utf8.prefix(while: isTokenByte)))
    }
    coding = codings.isEmpty ? nil : codings.joined(separator: ", ")
    mediaType = head.mediaType
    isMediaTypeUnclear = mediaType == nil && head.first("content-type") != nil
    if let extent, coding == nil { digests = head.statedDigests(isWhole: extent.isWhole) }
    let dispositions = head.values("content-disposition")
    proposedName = dispositions.count == 1 ? ContentDisposition(dispositions[0])?.filename : nil
    // A validator is printable ASCII: bytes that were no UTF-8 look alike, Swift takes different spellings of an
    // accented letter for equal, and some servers take a control byte, such as a lone CR, for the end of the line in
    // the next request.
    func isPrintable(_ text: String) -> Bool { text.utf8.allSatisfy { 0x20...0x7E ~= $0 } }
    // Files whose times were taken away all have this day, whatever is in them.
    lastModified = head.first("last-modified").flatMap {
      isPrintable($0) && $0.utf8.count <= 128 && !$0.utf8.starts(with: "Thu, 01 Jan 1970".utf8) ? $0 : nil
    }
    let etags = head.values("etag")
    // Two of them, or one that is no validator: the date is not one instead.
    guard etags.count <= 1, etags.allSatisfy({ isPrintable($0) && $0.utf8.count <= 4096 }) else { return }
    etag = etags.first
    isLastModifiedStrong = Self.isLastModifiedStrong(head, now: now)
  }

  private static func content(of head: ResponseHead) -> Content {
    switch head.status {
    case 200: return success(head)
    case 206: return range(of: head)
    case 416:
      guard let range = contentRange(of: head), range.first == nil else { return .nothingThere(size: nil) }
      return .nothingThere(size: range.total)
    case let status: return .refused(.http(status: status, logins: head.loginSchemes))
    }
  }

  /// What a 200 has. Some servers send the part that was asked for with this status, so that only Content-Range tells.
  private static func success(_ head: ResponseHead) -> Content {
    guard let range = contentRange(of: head), let first = range.first, let last = range.last,
      first > 0 || range.total.map({ last + 1 < $0 }) ?? false
    else { return .whole }
    guard case .length(let length) = head.framing else { return .unknownRange("Content-Range with status 200") }
    return length == range.total ? .whole : self.range(of: head)
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

  /// The codings that Content-Encoding may name: those of IANA's registry (RFC 9110, 18.6) but `identity`, and those
  /// that servers use without being there.
  private static let codings: Set<String> = [
    "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip",
    "zstd", "bzip2", "lz4", "lzma", "sdch", "snappy", "x-bzip2", "x-lzma", "x-snappy", "x-xz", "xz", "zlib",
  ]

  /// Whether a member of the field names a coding. Stores keep what the uploader wrote there: `utf-8`, `none`,
  /// `binary`, nothing at all, or the `aws-chunked` of the upload, which say nothing about the body.
  private static func isCoding(_ member: String) -> Bool {
    codings.contains(lowercasedASCII(Substring(member.utf8.prefix(while: isTokenByte))))
  }
}
