/// The version of a resource that the data belongs to, as a `response:` line describes it.
package struct RemoteVersion: Sendable, Equatable {
  /// Which `url:` line of the job answered, counted from 1.
  package var mirror: Int
  /// Bytes of the whole representation, where the server said so.
  package var size: UInt64?
  /// As sent, `W/` included.
  package var etag: String?
  /// The Last-Modified field as sent, only where it is a strong validator (RFC 9110 section 8.8.2.2).
  package var modified: String?
  /// The server answered 200 to an `If-Range` with this validator: ask without it and compare.
  package var ignoresIfRange: Bool
  /// The resource that the validators belong to; nil in journals of version 0.1.
  package var resource: Resource?
  /// The media type without parameters, in lower case; nil where the server named none.
  package var type: String?
  /// The Content-Encoding that the bytes are kept in, although none was asked for; nil if they are the file's own.
  package var coding: String?
  /// The bytes were decoded as they came, so no validator says where they would continue.
  package var isDecoded = false
  /// The digests of the whole representation that the server stated.
  package var stated: Digests
  /// A person says that the job's new URL leads to the same file: a response with this size and validator is of the
  /// same resource.
  package var isVouched = false

  /// - Parameter mirror: the number of the URL in the job, from 1.
  package init(
    mirror: Int, size: UInt64?, etag: String?, modified: String?, ignoresIfRange: Bool = false,
    resource: Resource? = nil, type: String? = nil, stated: Digests = Digests()
  ) {
    self.mirror = mirror
    self.size = size
    self.etag = etag
    self.modified = modified
    self.ignoresIfRange = ignoresIfRange
    self.resource = resource
    self.type = type
    self.stated = stated
  }

  /// The ETag if it is a strong one (RFC 9110 section 8.8.3).
  package var strongETag: String? {
    guard let etag, etag.utf8.count >= 2, etag.utf8.first == 0x22, etag.utf8.last == 0x22 else { return nil }
    return etag
  }

  /// What `If-Range` may carry (RFC 9110 section 13.1.5): a strong ETag, or a date only if there is no ETag at all.
  package var ifRange: String? { isDecoded ? nil : etag == nil ? modified : strongETag }
}

extension RemoteVersion {
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
    if etag != nil { return strongETag != nil && strongETag == answer.strongETag }
    return modified != nil && answer.etag == nil && modified == answer.modified
  }
}
