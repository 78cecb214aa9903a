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
      if let reason = relinking.obstacle(text) { return .refused(place, reason) }
      do throws(SpoolError) {
        let stays = place.directory == .hold || place.directory == .urgent
        let home = stays ? place.directory : try home(of: place)
        return .relinked(from: place, to: try edit(place, to: home) { relinking.applied(to: $0) })
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
}
