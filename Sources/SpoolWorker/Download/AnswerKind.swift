internal import Spool
internal import Transfer

/// What an answer looks like from outside. A page that a network puts in front of what was asked for (a captive
/// portal, RFC 8910), a proxy's notice and a
/// "not found" with status 200 are no new version of a file, however well-formed they are.
enum AnswerKind {
  /// The same for the same answer: by it one that was not believed is known when it comes again.
  static func text(_ answer: RemoteVersion) -> String {
    let validator = answer.etag.map { "ETag \($0)" } ?? answer.modified.map { "of \($0)" } ?? "no validator"
    return
      "\(answer.type ?? "no type"), \(answer.size.map { "\($0) bytes" } ?? "no size"), \(validator), \(answer.placeText)"
  }

  /// What makes a whole answer odd beside the version that data is of; nil where it may be that file's next version.
  /// - Parameter held: bytes of the data.
  static func oddity(of answer: RemoteVersion, beside version: RemoteVersion, held: UInt64) -> String? {
    if version.etag ?? version.modified != nil, answer.etag == nil, answer.modified == nil {
      return "no validator, where there was one"
    }
    if let type = answer.type, let before = version.type, type != before { return "\(type), where \(before) was" }
    if let size = answer.size, size < held / 2 { return "\(size) bytes in all, where \(held) are here already" }
    return nil
  }

  /// The same of the first answer to a job: a page of another host, to which a redirect led, instead of a file whose
  /// name says that it is none.
  /// - Parameter asked: the job's URL.
  static func oddity(of answer: RemoteVersion, _ head: ResponseHead, _ asked: URLParts?) -> String? {
    guard let asked, let url = head.url, url.host != asked.host, isPage(answer.type),
      let name = asked.lastPathSegment, let dot = name.lastIndex(of: "."), dot != name.startIndex
    else { return nil }
    let suffix = name[name.index(after: dot)...].lowercased()
    let isOfPage =
      suffix.hasPrefix("htm") || ["xhtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "cfm"].contains(suffix)
    return isOfPage || suffix.isEmpty ? nil : "a page of \(url.host), to which it redirects"
  }

  private static func isPage(_ type: String?) -> Bool { type == "text/html" || type == "application/xhtml+xml" }
}

extension RemoteVersion {
  /// For a person.
  var placeText: String { resource?.place ?? "mirror \(mirror)" }
}
