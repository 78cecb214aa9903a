internal import Spool
internal import Transfer

/// What kind of thing an answer is. A page that a network shows instead of the file (a captive portal, RFC 8910), a
/// proxy's notice and a "not found" with status 200 are no new version of a file, however well-formed they are.
enum AnswerKind {
  /// The same text for the same answer: it shows whether an answer that was not believed comes again.
  static func text(_ answer: RemoteVersion) -> String {
    let validator = answer.etag.map { "ETag \($0)" } ?? answer.modified.map { "of \($0)" } ?? "no validator"
    return
      "\(answer.type ?? "no type"), \(answer.size.map { "\($0) bytes" } ?? "no size"), \(validator), \(answer.placeText)"
  }

  /// What makes a whole answer odd compared with the version that the data is of; nil if it may be that file's next
  /// version.
  /// - Parameter held: bytes of the data.
  static func oddity(of answer: RemoteVersion, beside version: RemoteVersion, held: UInt64) -> String? {
    if version.etag ?? version.modified != nil, answer.etag == nil, answer.modified == nil {
      return "no validator, where there was one"
    }
    if let type = answer.type, let before = version.type, type != before { return "\(type), where \(before) was" }
    if let size = answer.size, size < held / 2 { return "\(size) bytes in all, where \(held) are here already" }
    return nil
  }

  /// What makes the first answer to a job odd: a page of another host, to which a redirect led, instead of a file whose
  /// name says that it is no page.
  /// - Parameters:
  ///   - url: what answered.
  ///   - asked: the job's URL.
  static func oddity(of answer: RemoteVersion, from url: URLParts, asked: URLParts) -> String? {
    guard url.host != asked.host, isPage(answer.type), let name = asked.lastPathSegment,
      let dot = name.lastIndex(of: "."), dot != name.startIndex
    else { return nil }
    let suffix = name[name.index(after: dot)...].lowercased()
    let isOfPage =
      suffix.hasPrefix("htm") || ["xhtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "cfm"].contains(suffix)
    return isOfPage || suffix.isEmpty ? nil : "a page of \(url.host), to which it redirects"
  }

  private static func isPage(_ type: String?) -> Bool { type == "text/html" || type == "application/xhtml+xml" }
}

extension RemoteVersion {
  /// The version that a response is of; the caller sets its size.
  init(_ response: Response, mirror: Int) {
    self.init(
      mirror: mirror, size: nil, etag: response.etag,
      modified: response.isLastModifiedStrong ? response.lastModified : nil,
      resource: Resource(place: response.url.redacted, query: response.url.query), type: response.mediaType)
  }

  /// For a person.
  var placeText: String { resource?.place ?? "mirror \(mirror)" }
}
