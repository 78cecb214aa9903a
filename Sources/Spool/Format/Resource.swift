/// The parts of a text that should be a URL, for those who show or compare it. They take it as it is, and need no
/// libcurl. Pure.
package struct URLText: Sendable {
  /// With `://` at its end, or `//` alone; empty where the text has neither.
  package let scheme: Substring
  /// Host and port, without user name and password.
  package let host: Substring
  /// From the slash behind the host up to the query.
  package let path: Substring
  /// All before query and fragment. With a user name and a password, if there are any: only to be compared.
  package let place: Substring

  package init(_ text: String) {
    place = text.prefix(before: "?#")
    let name = place.prefix(before: ":/@")
    let behind = place[name.endIndex...]
    let mark = behind.begins(with: "://") ? 3 : place.begins(with: "//") ? 2 : 0
    let rest = mark > 0 ? behind.dropFirstBytes(mark) : place[...]
    scheme = place[..<rest.startIndex]
    let authority = rest.prefix(before: "/")
    let login = authority.utf8.lastIndex(of: UInt8(ascii: "@"))
    let named = login.map { authority[$0...].dropFirstBytes() } ?? authority
    let isClear = login != nil || mark == 3 && !named.isEmpty && Self.mayBeHost(named)
    if !isClear, text.utf8.contains(UInt8(ascii: "@")) {
      // A slash too many or too few, or an unescaped one in a password: it is not clear where the password ends.
      (host, path) = ("(malformed)", "")
    } else {
      // What is no port may be a password whose host is missing.
      host = Self.mayBeHost(named) ? named : named.prefix(before: ":%")
      path = rest[authority.endIndex...]
    }
  }

  /// Whether it has no escapes, and what follows the first colon can be a port. An IPv6 address is in brackets.
  private static func mayBeHost(_ authority: Substring) -> Bool {
    if authority.begins(with: "[") { return true }
    let port = authority.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst()
    return port.allSatisfy { 0x30...0x39 ~= $0 } && !authority.utf8.contains(UInt8(ascii: "%"))
  }

  /// The whole without its password, by which what was fetched is known after a change of that. Not to be shown.
  package var withoutPassword: String {
    let text = place.base
    let authority = place[scheme.endIndex...].prefix(before: "/")
    guard let login = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return text }
    return "\(text[..<authority.startIndex])\(authority[..<login].prefix(before: ":"))\(text[login...])"
  }

  /// What follows the last slash of the path; nil where that is nothing.
  package var lastName: Substring? {
    path.split(at: "/", omittingEmptySubsequences: false).last.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// A URL without user name, password and query, which may be secret, for those who show it and need none of its parts.
package func shownURL(_ url: String) -> String {
  let parts = URLText(url)
  return "\(parts.scheme)\(parts.host)\(parts.path)"
}

/// The resource that answered a request, after all redirects. Validators compare versions of one resource only (RFC
/// 9110 section 8.8.1): nginx's ETag, for example, is a time and a size, which two files of one deployment may share.
package struct Resource: Sendable, Hashable {
  /// Scheme, host, port where it is not the scheme's own, and path; without user, password and query. Of a secret path,
  /// a digest: ``hidden(_:)``.
  package var place: String { exactPlace.text }
  private let exactPlace: ExactText
  /// A CRC-32 of the query, which may contain secrets; nil if the URL has none. It shows only whether two queries
  /// differ.
  package let query: Checksum?

  package init(place: String, query: Checksum?) { (exactPlace, self.query) = (place.exact, query) }

  /// - Parameter query: without the question mark.
  package init(place: String, query: String?) { self.init(place: place, query: query.map { Checksum(of: $0) }) }

  /// What is recorded of a place whose path is secret: its origin, and a digest of all of it, by which it is compared.
  package static func hidden(_ place: String) -> String {
    let origin = place.split(at: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
    return "\(origin.joined(separator: "/"))/#\(Digest(.sha256, of: place).description.prefix(32))"
  }

  /// No URL's path has a `#`.
  private var isHidden: Bool { place.utf8.contains(UInt8(ascii: "#")) }

  private func isAtPlace(of other: Resource) -> Bool {
    if isHidden == other.isHidden { return exactPlace == other.exactPlace }
    return isHidden ? exactPlace == Self.hidden(other.place).exact : Self.hidden(place).exact == other.exactPlace
  }

  enum Relation: Sendable {
    case same
    /// Same origin and path, another query: a link that was signed again, or another object of one script. Only a
    /// strong ETag can tell which.
    case otherQuery
    case other
  }

  func relation(to other: Resource) -> Relation {
    guard isAtPlace(of: other) else { return .other }
    return query == other.query ? .same : .otherQuery
  }
}

/// The version of a resource that the data belongs to, as a `response:` line describes it.
package struct RemoteVersion: Sendable, Equatable {
  /// Which `url:` line of the job answered, counted from 1.
  package var mirror: Int
  /// Bytes of the whole representation, where the server said so.
  package var size: UInt64?
  /// As sent, `W/` included.
  @Exact package var etag: String?
  /// The Last-Modified field as sent, only where it is a strong validator (RFC 9110 section 8.8.2.2).
  @Exact package var modified: String?
  /// The server answered 200 to an `If-Range` with this validator: ask without it and compare.
  package var ignoresIfRange: Bool
  /// The resource that the validators belong to; nil in journals of version 0.1.
  package var resource: Resource?
  /// The media type without parameters, in lower case; nil where the server named none.
  @Exact package var type: String?
  /// The Content-Encoding that the bytes are kept in, although none was asked for; nil if they are the file's own.
  @Exact package var coding: String? = nil
  /// The bytes were decoded as they came, so no validator says where they would continue.
  package var isDecoded = false
  package var stated: Digests
  /// A person says that the job's new URL leads to the same file: a response with this size and validator is of the
  /// same resource.
  package var isVouched = false

  package init(
    mirror: Int, size: UInt64?, etag: String?, modified: String?, ignoresIfRange: Bool = false,
    resource: Resource? = nil, type: String? = nil, stated: Digests = Digests()
  ) {
    (self.mirror, self.size, self.etag, self.modified) = (mirror, size, etag, modified)
    (self.ignoresIfRange, self.resource, self.type, self.stated) = (ignoresIfRange, resource, type, stated)
  }

  /// The ETag if it is a strong one (RFC 9110 section 8.8.3).
  package var strongETag: String? {
    guard let etag, etag.utf8.count >= 2, etag.utf8.first == 0x22, etag.utf8.last == 0x22 else { return nil }
    return etag
  }

  /// What `If-Range` may carry (RFC 9110 section 13.1.5): a strong ETag, or a date only if there is no ETag at all.
  package var ifRange: String? { isDecoded ? nil : etag == nil ? modified : strongETag }

  /// How the resource of `answer` relates to this one. Where the journal of an older version names no resource, the
  /// job's URL decides.
  func relation(to answer: RemoteVersion) -> Resource.Relation {
    guard let resource, let other = answer.resource else { return mirror == answer.mirror ? .same : .other }
    return resource.relation(to: other)
  }

  /// Whether `answer` may be the same version of the same resource, judged by the resources and the kind of validator.
  /// The validators themselves are compared elsewhere.
  package func isComparable(with answer: RemoteVersion) -> Bool {
    switch relation(to: answer) {
    case .same: true
    case .otherQuery: strongETag != nil
    case .other: isVouched && hasSameValidator(as: answer)
    }
  }

  /// Whether `answer` counts as comparable only by a person's word, so that its size must be known and the same.
  package func dependsOnWord(with answer: RemoteVersion) -> Bool { isVouched && relation(to: answer) == .other }

  private func hasSameValidator(as answer: RemoteVersion) -> Bool {
    if etag != nil { return strongETag != nil && strongETag?.exact == answer.strongETag?.exact }
    return modified != nil && answer.etag == nil && modified?.exact == answer.modified?.exact
  }
}

/// The media types that a payload may have, such as `application/zip` or `image/*` (RFC 9110 section 8.3.1).
package struct MediaTypes: Sendable, Equatable {
  /// In lower case, without parameters.
  private let ranges: [Substring]

  /// Reads types with blanks between them; nil if one is malformed.
  package init?(_ text: String) {
    ranges = text.lowercasedASCII.split(at: " \t")
    guard !ranges.isEmpty, ranges.allSatisfy(Self.isRange) else { return nil }
  }

  /// As a job has it, in lower case with single blanks.
  package var text: String { ranges.joined(separator: " ") }

  /// - Parameter type: in lower case, without parameters.
  package func contain(_ type: String) -> Bool {
    ranges.contains { $0.ends(with: "/*") ? type.begins(with: $0.dropLast()) : type == $0 }
  }

  private static func isRange(_ text: Substring) -> Bool {
    let parts = text.split(at: "/", omittingEmptySubsequences: false)
    return parts.count == 2 && isToken(parts[0]) && (parts[1] == "*" || isToken(parts[1]))
  }

  /// RFC 9110 section 5.6.2, except that an asterisk stands for all types.
  private static func isToken(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { isAlphanumeric($0) || "!#$%&'+-.^_`|~".utf8.contains($0) }
  }
}

/// What a job asked for when its data came: one of its URLs, or the hook `resolve` with its text. It shows whether the
/// job asks for something else by now.
package struct DataSource: Sendable, Equatable {
  /// Scheme, host, port and path of the URL; nil if the hook said it.
  @Exact private(set) var place: String?
  /// A CRC-32 of the URL's query, which may contain secrets, or ``noQuery``; nil where an older version did not say it.
  @Exact private(set) var query: String?
  /// A CRC-32 of the text that the hook was asked with; nil if it was not asked.
  let resolve: Checksum?

  private static let noQuery = "none"

  package init(_ resource: Resource) {
    (place, query, resolve) = (resource.place, resource.query.map { "\($0)" } ?? Self.noQuery, nil)
  }

  package init(resolve text: String) { (place, query, resolve) = (nil, nil, Checksum(of: text)) }

  /// As a `started:` line has it; nil if it does not say it.
  init?(_ fields: Fields) {
    resolve = fields["resolve"].flatMap { Checksum($0) }
    place = resolve == nil ? fields["url"] : nil
    query = fields["query"]
    if place == nil, resolve == nil { return nil }
  }

  package func isSame(as other: DataSource) -> Bool {
    _place == other._place && resolve == other.resolve && (_query == other._query || query == nil || other.query == nil)
  }
}
