internal import SystemPackage

package enum RelinkOutcome: Sendable {
  case relinked(from: JobPlace, to: JobPlace)
  /// It cannot be, for this reason; nothing was changed.
  case refused(JobPlace, String)
  case ambiguous([JobPlace])
  /// Another job has its name in the directory that it would go to.
  case taken(JobPlace, by: JobPlace)
  case notFound(elsewhere: JobPlace?)
}

extension Steering {
  private static let tries = 50

  /// Gives the job `name`, in whatever state it is, other URLs, and starts it again where it was not held. A worker
  /// that runs it stops.
  /// - Parameter directory: of several jobs of one name, the one in this directory.
  /// - Parameter relinking: what it gets.
  package func relink(_ name: FileName, in directory: Directory?, _ relinking: Relinking) throws(SpoolError)
    -> RelinkOutcome
  {
    guard name.isEntry, JobName(name) != nil else { return .notFound(elsewhere: nil) }
    try removeTouched(name)
    for attempt in 1...Self.tries {
      let all = try JobSearch(spool).places(of: name, in: directory.map { [$0] })
      var candidates: [(place: JobPlace, text: JobText)] = []
      for place in all where place.directory != .done {
        guard try spool.status(place.directory, place.name)?.isRegular == true,
          let text = try JobSearch(spool).job(place.directory, place.name)
        else { continue }
        candidates.append((place, text))
      }
      guard let (place, text) = candidates.first else {
        // One look can miss a job that moves.
        if attempt < 3 { continue }
        return .notFound(elsewhere: all.first)
      }
      if candidates.contains(where: { $0.place.inode != place.inode }) { return .ambiguous(candidates.map(\.place)) }
      if let reason = relinking.obstacle(text) ?? Self.receipt(text, at: place) { return .refused(place, reason) }
      do throws(SpoolError) {
        let stays = place.directory == .hold || place.directory == .urgent
        let home = stays ? place.directory : try home(of: place)
        try removeRecord(beside: place)
        return .relinked(from: place, to: try change(place, to: home, relinking))
      } catch  where error.errno == .alreadyInProcess {
        return .refused(place, error.reason ?? "\(error)")
      } catch  where error.errno == .noSuchFileOrDirectory {
        // It has moved since the look: look again.
        continue
      } catch  where error.errno == .fileExists {
        guard
          let other = try JobSearch(spool).places(of: name, in: [.new, .partial, .standing]).first(where: {
            $0.inode != place.inode
          })
        else { throw error }
        return .taken(place, by: other)
      }
    }
    return .notFound(elsewhere: nil)
  }

  /// - Throws: ``SpoolError``, EALREADY if its worker has written the receipt since the look.
  private func change(_ place: JobPlace, to home: Directory, _ relinking: Relinking) throws(SpoolError) -> JobPlace {
    try JobEditor(spool).edit(place, to: home) { (old) throws(SpoolError) in
      if let reason = Self.receipt(old.withUnsafeBytes { JobText($0) }, at: place) {
        throw SpoolError(call: .rename, path: place.display, errno: .alreadyInProcess, reason: reason)
      }
      return relinking.applied(to: old, at: spool.now())
    }
  }

  /// Why a job is not changed that its worker has only to move to `done/`; nil for any other.
  private static func receipt(_ text: JobText, at place: JobPlace) -> String? {
    let isInHand = place.directory == .cur || place.directory == .partial
    guard isInHand, text.journal.publication.receipt != nil else { return nil }
    return "it has published its file and written its receipt, so it is all but done"
  }
}

/// The change of a job's text that gives it other URLs. Pure.
package struct Relinking: Sendable {
  private let urls: [String]
  /// The first URL, without secrets, for the journal.
  private let shownURL: String
  /// A person's word that the new URLs lead to the file of which the job has a part.
  private let isSame: Bool
  private let isOffered: Bool
  private let output: @Sendable (JobRequest) -> String?

  /// - Parameter urls: at least one, checked, without line breaks.
  /// - Parameter isOffered: whether a list chose a URL which does not encrypt.
  /// - Parameter output: the output of a job that asks for a request; nil for none.
  package init(
    to urls: [String], shownURL: String, isSame: Bool, isOffered: Bool = false,
    output: @escaping @Sendable (JobRequest) -> String?
  ) {
    (self.urls, self.shownURL, self.isSame, self.output) = (urls, shownURL, isSame, output)
    self.isOffered = isOffered
  }

  func obstacle(_ job: JobText) -> String? {
    if job.hasTornTail, !job.tailBeginsJournal { return "its last line has no newline: it may be incomplete" }
    guard isSame, let version = job.journal.data.version else { return nil }
    if version.ifRange == nil { return "its data has no strong validator by which --same could be checked" }
    if version.size == nil { return "the size of its file is not known, so --same cannot be checked" }
    return nil
  }

  /// The same job with the URLs in place of its own, of which the journal tells. The hook `resolve` would say others,
  /// so it is not asked any more. The output stays the same, even if the old URL gave its name.
  func applied(to old: [UInt8], at time: Timestamp = .now()) -> [UInt8] {
    let text = old.withUnsafeBytes { JobText($0) }
    var request = text.request
    request.urls = urls.map { .init(text: $0, number: 0) }
    let pinned = output(text.request).flatMap { $0.exact == output(request)?.exact ? nil : $0 }
    let replaced: Set<String> = pinned == nil ? ["url", "resolve"] : ["url", "resolve", "output"]
    let lines = urls.map { "url: \($0)\n" } + (pinned.map { ["output: \($0)\n"] } ?? [])
    let isNewlyOffered = isOffered && !text.request.isOffered
    var result = Array((isNewlyOffered ? JobText.offered(lines.joined()) : lines.joined()).utf8)
    result += JobLines.kept(of: JobText.withoutTornLine(old)) { !$0.sets(replaced) }
    if result.last != 0x0A { result.append(0x0A) }
    // Before its first attempt a job has nothing that the URLs could be compared with.
    if !text.journal.isEmpty { result += JournalLine.relinked(time, url: shownURL, isSame: isSame).text.utf8 }
    return result
  }
}
