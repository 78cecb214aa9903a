internal import Glibc
internal import SystemPackage

/// A claim's file is replaced by a copy of this worker's own making: after a failed fsync, when the journal is long, or
/// where the file is another user's.
extension Claim {
  /// Puts the job into a new inode: a failed fsync is never retried on its inode (fsync(2): the pages count as clean).
  /// - Parameter failure: the fsync's; nil where one is only feared.
  /// - Throws: ``SpoolError``.
  package func renew(after failure: SpoolError? = nil) throws(SpoolError) {
    lostWrites = failure ?? lostWrites
    // The new file would be a second job if a person took the old one away.
    guard try ownership() == .ours else { return }
    try replaceFile()
    lostWrites = nil
  }

  /// Rewrites a long journal without the checkpoints that later ones supersede: a slow download writes one every few
  /// seconds for weeks, and a file beyond ``Spool/maximumJobFile`` is no job.
  ///
  /// If that fails, the journal is not changed for now.
  /// - Parameter limit: bytes of the job file up to which it is not changed.
  /// - Throws: ``SpoolError`` where a flush failed, which the kernel reports only once.
  package func compact(beyond limit: Int64) throws(SpoolError) {
    guard end > max(limit, compactsBeyond) else { return }
    // So that neither a failure nor little gain has it copied with each checkpoint.
    compactsBeyond = end + max(limit, end) / 4
    do throws(SpoolError) {
      guard try ownership() == .ours else { return }
      try replaceFile(by: JobText.compacted(file.read(limit: Int(end))))
    } catch  where ![.fsync, .fdatasync].contains(error.call) {
    }
  }

  /// Puts another text in the place of the file's, at once or not at all, even by a power cut.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved, ESTALE where it was changed.
  package func rewrite(_ text: [UInt8]) throws(SpoolError) {
    switch try ownership() {
    case .ours: try replaceFile(by: text)
    case .changed: throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    case .moved, .takenOver, .removed:
      throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
    }
  }

  /// Replaces the file by a copy: another user's file may be changed or linked elsewhere while this worker appends to
  /// it.
  /// - Parameter text: what was judged to be a job; another user's file may have changed since. nil for the file's own
  ///   content.
  func replaceFile(by text: [UInt8]? = nil) throws(SpoolError) {
    let system = spool.system
    let bytes = if let text { text } else { try file.read(limit: Int(end)) }
    var fresh = try system.create(spool.root, spool.temporary(job.fileName), O_RDWR | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      try fresh.write(bytes, at: 0)
      // Locked before it has the claim's name: a claim without its lock looks like a crashed worker's.
      _ = try fresh.lock()
      let status = try fresh.status()
      try fresh.fdatasync()
      // The names that led to the old file first. btrfs keeps no order between renames of different files: after a
      // power cut the copy could be here, and the old file in `new/` again, a second job.
      try spool.flush(.cur).run()
      if origin != .cur { try spool.flush(origin).run() }
      try takePlace(fresh.path)
      fresh.path = path
      let copy = fresh.shared()
      (files, end) = (Files(file: copy, lock: copy, identity: status), Int64(bytes.count))
    } catch {
      try? system.unlink(spool.root, fresh.path)
      throw error
    }
  }

  /// Gives `copy` the claim's name.
  private func takePlace(_ copy: Path) throws(SpoolError) {
    do throws(SpoolError) {
      // Not a rename over it: if a person has just moved the claim elsewhere, the copy would be a second job.
      try spool.system.exchange(spool.root, copy, path)
      // A file left in `tmp/` is removed later, as after a crash.
      try? spool.system.unlink(spool.root, copy)
    } catch  where error.isUnknownRename {
      // Some network file systems cannot exchange. The file that a rename replaces must still be ours, after a copy and
      // flushes that may have hung.
      guard try ownership() == .ours else {
        throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
      }
      try spool.system.rename(spool.root, copy, path)
    }
  }
}
