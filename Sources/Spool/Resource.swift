/// What answered a request, after all redirects: validators compare versions of one resource only (RFC 9110 section 8.8.1).
/// nginx's ETag, for one, is a time and a size, so that two files of one deployment share it.
package struct Resource: Sendable, Hashable {
  /// Scheme, host, port where it is not the scheme's own, and path; without user, password and query.
  package let place: String
  /// A CRC-32 of the query, which may hold secrets; nil where the URL has none. It tells only that a query is another.
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

  package enum Relation: Sendable {
    case same
    /// Same origin and path, another query: a link that was signed anew, or another object of one script. Only a strong ETag may tell.
    case otherQuery
    case other
  }

  package func relation(to other: Resource) -> Relation {
    if place != other.place { return .other }
    return query == other.query ? .same : .otherQuery
  }
}

extension RemoteVersion {
  /// What `answer` is of, beside this. Where the journal of an older version names no resource, the job's URL has to do.
  package func relation(to answer: RemoteVersion) -> Resource.Relation {
    guard let resource, let other = answer.resource else { return mirror == answer.mirror ? .same : .other }
    return resource.relation(to: other)
  }

  /// Whether `answer` may be of the same version of the same resource, as far as resources and their kind of validator tell; the validators themselves
  /// are compared elsewhere.
  package func mayBeContinued(by answer: RemoteVersion) -> Bool {
    switch relation(to: answer) {
    case .same: true
    case .otherQuery: strongETag != nil
    case .other: false
    }
  }
}
