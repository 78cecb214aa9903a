internal import SystemPackage

extension Claim {
  package enum Ownership: Sendable {
    case ours
    /// A person moved the job, for example to `hold/`.
    case moved
    /// Another worker has it or had it, because this one gave no sign of life for the lease.
    case takenOver
    /// The file was removed: the job is cancelled.
    case removed
    /// The file was written to in place, by an editor or by a successor on another host: this worker may not continue
    /// with it.
    case changed
  }

  /// Looks whether the file still has the claim's own name.
  package func ownership() throws(SpoolError) -> Ownership {
    do throws(SpoolError) {
      let found = try spool.system.status(spool.root, path)
      if found.isSameFile(as: identity) { return found.size == end ? .ours : .changed }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
    // After the look at the name: in the other order, a file that is removed between the two would seem moved.
    let hasName = try hasName()
    if let found = try find() { return found }
    // If it has a name, a person has moved it out of the spool, so its data stays. Otherwise a second look: it may have
    // moved during the first.
    return if hasName { .moved } else { try find(isReversed: true) ?? .removed }
  }

  /// Makes sure, on any thread, that the file still has the claim's own name; otherwise it throws ENOENT.
  package var confirmation: @Sendable () throws(SpoolError) -> Void {
    { [spool, path, identity] () throws(SpoolError) in
      guard try spool.system.status(spool.root, path).isSameFile(as: identity) else {
        throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
      }
    }
  }

  /// Whether the file still has a name somewhere, as far as this kernel knows: another host may have removed it.
  private func hasName() throws(SpoolError) -> Bool {
    guard spool.kind.isLocal else { return false }
    do throws(SpoolError) { return try file.status().links > 0 } catch  where error.isGone { return false }
  }

  /// Looks for the job in all states, in the order in which it moves, or in reverse.
  /// - Returns: nil if it is nowhere. Another job of its name does not count.
  private func find(isReversed: Bool = false) throws(SpoolError) -> Ownership? {
    let directories: [Directory] = [.new, .urgent, .cur, .partial, .standing, .failed, .done]
    var places = try JobSearch(spool).places(of: job.fileName, in: isReversed ? directories.reversed() : directories)
    for name in try spool.list(.hold) where name == job.fileName || ClaimName(name)?.job == job {
      guard let status = try spool.status(.hold, name) else { continue }
      places.append(JobPlace(directory: .hold, name: name, inode: status.inode))
    }
    var isMoved = false
    for place in places {
      // This worker has not written to a job that it may not read.
      let journal = (try? JobSearch(spool).job(place.directory, place.name))?.journal
      if try isDoneByOthers(at: place) { return .takenOver }
      if place.directory == .cur && place.name != path.name || isOthers(journal) {
        if try isTakenOver(at: place) { return .takenOver }
      } else if place.directory == .done {
        // An older job of this name may be there, and a person moves nothing there.
        continue
      } else if place.inode == identity.inode || journal?.isEmpty == false {
        // An editor gives the job a new inode, in which its journal is.
        isMoved = true
      }
    }
    return isMoved ? .moved : nil
  }

  /// Whether another worker has begun with the job since this one claimed it.
  private func isOthers(_ journal: Journal?) -> Bool {
    guard let worker = journal?.attempts.lastStart?.worker else { return false }
    return worker != spool.owner.text && worker != text.journal.attempts.lastStart?.worker
  }

  /// Whether what another worker has there is this job. It may be another job of the name, which was dropped when a
  /// person had removed this one.
  private func isTakenOver(at place: JobPlace) throws(SpoolError) -> Bool {
    if place.inode == identity.inode || isSilent { return true }
    // A successor may have a copy of the file, where nothing names a worker that has not begun. But an older job of the
    // name may be in `done/`.
    if begun == nil, place.directory != .done { return true }
    return try contains(" worker=\(spool.owner.text) ".utf8, place)
  }

  /// Whether the receipt is this job's. If this worker had written it already, its successor made the last move only,
  /// and nothing names it. An older job of the name may be there as well.
  private func isDoneByOthers(at place: JobPlace) throws(SpoolError) -> Bool {
    guard place.directory == .done, let begun, place.inode == identity.inode || isSilent else { return false }
    return try contains(begun, place)
  }

  private func contains(_ text: some Collection<UInt8>, _ place: JobPlace) throws(SpoolError) -> Bool {
    let bytes = try spool.readableContents(place.path) ?? []
    return bytes.firstRange(of: text) != nil
  }
}
