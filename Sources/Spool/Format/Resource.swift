/// The resource that answered a request, after all redirects. Validators compare versions of one resource only (RFC
/// 9110 section 8.8.1): nginx's ETag, for example, is a time and a size, which two files of one deployment may share.
package struct Resource: Sendable, Hashable {
  /// Scheme, host, port where it is not the scheme's own, and path; without user, password and query. Of a secret path,
  /// a digest: ``hidden(_:)``.
  package let place: String
  /// A CRC-32 of the query, which may contain secrets; nil if the URL has none. It shows only whether two queries
  /// differ.
  package let query: Checksum?

  /// As a journal has it.
  package init(place: String, query: Checksum?) {
    self.place = place
    self.query = query
  }

  /// - Parameter query: without the question mark.
  package init(place: String, query: String?) {
    self.place = place
    self.query = query.map { Checksum(of: $0) }
  }

  /// What is recorded of a place whose path is secret: its origin, and a digest of all of it, by which it is compared.
  package static func hidden(_ place: String) -> String {
    let origin = place.split(at: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
    return "\(origin.joined(separator: "/"))/#\(Digest(.sha256, of: place).description.prefix(32))"
  }

  /// No URL's path has a `#`.
  private var isHidden: Bool { place.utf8.contains(UInt8(ascii: "#")) }

  private func isAtPlace(of other: Resource) -> Bool {
    if isHidden == other.isHidden { return place.exact == other.place.exact }
    return isHidden ? place == Self.hidden(other.place) : Self.hidden(place) == other.place
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
