/// What a job asked for when its data came: one of its URLs, or the hook `resolve` with its text. It shows whether the
/// job asks for something else by now.
package struct DataSource: Sendable, Equatable {
  /// Scheme, host, port and path of the URL; nil if the hook said it.
  let place: String?
  /// A CRC-32 of the URL's query, which may contain secrets, or ``noQuery``; nil where an older version did not say it.
  let query: String?
  /// A CRC-32 of the text that the hook was asked with; nil if it was not asked.
  let resolve: Checksum?

  private static let noQuery = "none"

  /// A URL of the job.
  package init(_ resource: Resource) {
    (place, query, resolve) = (resource.place, resource.query.map { "\($0)" } ?? Self.noQuery, nil)
  }

  /// The hook, asked with this text.
  package init(resolve text: String) { (place, query, resolve) = (nil, nil, Checksum(of: text)) }

  /// As a `started:` line has it; nil if it does not say it.
  init?(_ fields: Fields) {
    resolve = fields["resolve"].flatMap { Checksum($0) }
    place = resolve == nil ? fields["url"] : nil
    query = fields["query"]
    if place == nil, resolve == nil { return nil }
  }

  /// Whether both are the same, as far as they say it.
  package func isSame(as other: DataSource) -> Bool {
    place == other.place && resolve == other.resolve && (query == other.query || query == nil || other.query == nil)
  }
}
