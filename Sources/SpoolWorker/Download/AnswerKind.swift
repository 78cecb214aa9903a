package import Spool
package import Transfer

/// Recognizes responses that are probably not the file: the page of a captive portal (RFC 8910), a proxy's notice, a
/// "not found" page with status 200. These are not new versions of the file, even if they are well-formed.
enum AnswerKind {
  /// A text that is the same for the same response. It shows whether a response that was not accepted comes again.
  static func text(_ answer: RemoteVersion) -> String {
    let validator = answer.etag.map { "ETag \($0)" } ?? answer.modified.map { "of \($0)" } ?? "no validator"
    let size = answer.size.map { "\($0) bytes" } ?? "no size"
    return "\(answer.type ?? "no type"), \(size), \(validator), \(answer.placeText)"
  }

  /// Why a complete response is probably not a new version of the file that the data is part of; nil if it may be one.
  /// - Parameter dataLength: the length of the data, in bytes.
  static func oddity(of answer: RemoteVersion, beside version: RemoteVersion, dataLength: UInt64) -> String? {
    if version.etag ?? version.modified != nil, answer.etag == nil, answer.modified == nil {
      return "no validator, but the data has one"
    }
    if let type = answer.type, let before = version.type, type != before { return "\(type) instead of \(before)" }
    if let size = answer.size, size < dataLength / 2 {
      return "\(size) bytes in total, but \(dataLength) are here already"
    }
    return nil
  }

  /// Why the first response to a job is probably not the file: a redirect led to a page of another host, but the URL's
  /// file name is not that of a page.
  /// - Parameters:
  ///   - url: the URL that answered.
  ///   - asked: the job's URL.
  static func oddity(of answer: RemoteVersion, from url: URLParts, asked: URLParts) -> String? {
    guard url.host != asked.host, isPage(answer.type), let name = asked.lastPathSegment,
      let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex
    else { return nil }
    let suffix = name[dot...].dropFirstBytes().lowercasedASCII
    let isOfPage =
      suffix.begins(with: "htm") || ["xhtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "cfm"].contains(suffix)
    return isOfPage || suffix.isEmpty ? nil : "a page of \(url.host), to which it redirects"
  }

  static func isPage(_ type: String?) -> Bool { type == "text/html" || type == "application/xhtml+xml" }
}

extension RemoteVersion {
  /// The version that a response belongs to. The caller sets the size.
  package init(_ response: Response, mirror: Int) {
    self.init(
      mirror: mirror, size: nil, etag: response.etag,
      modified: response.isLastModifiedStrong ? response.lastModified : nil,
      resource: Resource(response.url), type: response.mediaType,
      stated: Digests(response.digests))
  }

  /// For a person. Of a secret path it has a digest.
  var placeText: String { resource?.place ?? "mirror \(mirror)" }
}

extension Resource {
  /// Of a URL, without a request.
  init(_ url: URLParts) {
    self.init(place: url.isPathSecret ? Self.hidden(url.place) : url.place, query: url.query)
  }
}
