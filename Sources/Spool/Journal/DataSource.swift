/// What a job asked for when its data came: one of its URLs, or the hook `resolve` with its text. It shows whether the
/// job asks for something else by now.
package struct DataSource: Sendable, Equatable {
  /// Scheme, host, port and path of the URL; nil if the hook said it.
  let place: String?
  /// A CRC-32 of the URL's query, which may contain secrets; nil if it has none.
  let query: Checksum?
  /// A CRC-32 of the text that the hook was asked with; nil if it was not asked.
  let resolve: Checksum?

  /// A URL of the job.
  package init(_ resource: Resource) { (place, query, resolve) = (resource.place, resource.query, nil) }

  /// The hook, asked with this text.
  package init(resolve text: String) {
    (place, query, resolve) = (nil, nil, Checksum(of: text))
  }

  /// As a `started:` line has it; nil if it does not say it.
  init?(_ fields: Fields) {
    resolve = fields["resolve"].flatMap { Checksum($0) }
    place = resolve == nil ? fields["url"] : nil
    query = fields["query"].flatMap { Checksum($0) }
    if place == nil, resolve == nil { return nil }
  }
}
