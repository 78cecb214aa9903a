/// The change of a job's text that gives it other URLs. Pure.
package struct Relinking: Sendable {
  private let urls: [String]
  /// The first URL, without secrets, for the journal.
  private let shownURL: String
  /// A person's word that the new URLs lead to the file of which the job has a part.
  private let isSame: Bool
  private let isOffered: Bool
  /// The output of a job with these URLs, by its request.
  private let output: @Sendable (JobRequest) -> String?

  /// - Parameters:
  ///   - urls: at least one, checked, without line breaks.
  ///   - isOffered: whether a list chose a URL which does not encrypt.
  ///   - output: the output of a job that asks for a request; nil for none.
  package init(
    to urls: [String], shownURL: String, isSame: Bool, isOffered: Bool = false,
    output: @escaping @Sendable (JobRequest) -> String?
  ) {
    (self.urls, self.shownURL, self.isSame, self.output) = (urls, shownURL, isSame, output)
    self.isOffered = isOffered
  }

  /// Why the job cannot be changed so; nil if it can.
  func obstacle(_ job: JobText) -> String? {
    if job.hasTornTail, !job.tornTailIsJournal { return "its last line has no newline: it may be incomplete" }
    guard isSame, let version = job.journal.data.version else { return nil }
    if version.ifRange == nil { return "its data has no strong validator by which --same could be checked" }
    if version.size == nil { return "the size of its file is not known, so --same cannot be checked" }
    return nil
  }

  /// The same job with the URLs in place of its own, of which the journal tells. The hook `resolve` would say others,
  /// so it is not asked any more. The output stays the same, even if the old URL gave its name.
  func applied(to old: [UInt8]) -> [UInt8] {
    let text = old.withUnsafeBytes { JobText($0) }
    var request = text.request
    request.urls = urls.map { .init(text: $0, number: 0) }
    let pinned = output(text.request).flatMap { $0.exact == output(request)?.exact ? nil : $0 }
    let replaced: Set<String> = pinned == nil ? ["url", "resolve"] : ["url", "resolve", "output"]
    let lines = urls.map { "url: \($0)\n" } + (pinned.map { ["output: \($0)\n"] } ?? [])
    let isNewlyOffered = isOffered && !text.request.isOffered
    var result = Array((isNewlyOffered ? JobText.offered(lines.joined()) : lines.joined()).utf8)
    // A journal line without its newline did not happen.
    let end = text.hasTornTail && text.tornTailIsJournal ? text.completeLength : old.count
    result += JobLines.kept(of: Array(old[..<end])) { !$0.sets(replaced) }
    if result.last != 0x0A { result.append(0x0A) }
    // Before its first attempt a job has nothing that the URLs could be compared with.
    if !text.journal.isEmpty {
      result += JournalLine.relinked(.now(), url: shownURL, isSame: isSame).text.utf8
    }
    return result
  }
}
