/// The resource that answered a request, after all redirects. Validators compare versions of one resource only (RFC
/// 9110 section 8.8.1): nginx's ETag, for example, is a time and a size, which two files of one deployment may share.
package struct Resource: Sendable, Hashable {
  /// Scheme, host, port where it is not the scheme's own, and path; without user, password and query.
  package let place: String
  /// A CRC-32 of the query, which may contain secrets; nil if the URL has none. It shows only whether two queries
  /// differ.
  package let query: Checksum?

  package init(place: String, query: Checksum?) {
    self.place = place
    self.query = query
  }

  /// - Parameter query: without the question mark.
  package init(place: String, query: String?) {
    self.place = place
    self.query = query.map { text in
      var checksum = Checksum()
      Array(text.utf8).withUnsafeBytes { checksum.update($0) }
      return checksum
    }
  }

  enum Relation: Sendable {
    case same
    /// Same origin and path, another query: a link that was signed again, or another object of one script. Only a
    /// strong ETag can tell which.
    case otherQuery
    case other
  }

  func relation(to other: Resource) -> Relation {
    if place != other.place { return .other }
    return query == other.query ? .same : .otherQuery
  }
}
