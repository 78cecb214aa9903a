internal import SystemPackage

/// What came of giving a job other URLs.
package enum RelinkOutcome: Sendable {
  case relinked(from: JobPlace, to: JobPlace)
  /// It cannot be, for this reason; nothing was changed.
  case refused(JobPlace, String)
  /// Several jobs have the name.
  case ambiguous([JobPlace])
  /// Another job has its name in the directory that it would go to.
  case taken(JobPlace, by: JobPlace)
  /// There is no job of this name that is not done.
  case notFound(elsewhere: JobPlace?)
}

extension Spool {
  private static let tries = 50

  /// Gives the job `name`, in whatever state it is, other URLs, and starts it again where it was not held. A worker
  /// that runs it stops.
  /// - Parameters:
  ///   - directory: of several jobs of one name, the one in this directory.
  ///   - relinking: what it gets.
  /// - Throws: ``SpoolError``.
  package func relink(_ name: FileName, in directory: Directory?, _ relinking: Relinking) throws(SpoolError)
    -> RelinkOutcome
  {
    guard name.isEntry, JobName(name) != nil else { return .notFound(elsewhere: nil) }
    for attempt in 1...Self.tries {
      let all = try places(of: name, in: directory.map { [$0] })
      var candidates: [(place: JobPlace, text: JobText)] = []
      for place in all where place.directory != .done {
        guard try status(place.directory, place.name)?.isRegular == true,
          let text = try self.job(place.directory, place.name)
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
        return .relinked(from: place, to: try change(place, to: home, relinking))
      } catch  where error.errno == .alreadyInProcess {
        return .refused(place, error.reason ?? "\(error)")
      } catch  where error.errno == .noSuchFileOrDirectory {
        // It has moved since the look: look again.
        continue
      } catch  where error.errno == .fileExists {
        guard
          let other = try places(of: name, in: [.new, .partial, .standing]).first(where: {
            $0.inode != place.inode
          })
        else {
          throw error
        }
        return .taken(place, by: other)
      }
    }
    return .notFound(elsewhere: nil)
  }

  /// - Throws: ``SpoolError``, EALREADY if its worker has written the receipt since the look.
  private func change(_ place: JobPlace, to home: Directory, _ relinking: Relinking) throws(SpoolError) -> JobPlace {
    try edit(place, to: home) { (old) throws(SpoolError) in
      if let reason = Self.receipt(old.withUnsafeBytes { JobText($0) }, at: place) {
        throw SpoolError(call: .rename, path: place.display, errno: .alreadyInProcess, reason: reason)
      }
      return relinking.applied(to: old)
    }
  }

  /// Why a job is not changed that its worker has only to move to `done/`; nil for any other.
  private static func receipt(_ text: JobText, at place: JobPlace) -> String? {
    let isInHand = place.directory == .cur || place.directory == .partial
    guard isInHand, text.journal.publication.receipt != nil else { return nil }
    return "it has published its payload and written its receipt, so it is all but done"
  }
}
