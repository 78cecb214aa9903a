internal import CLinux
internal import Glibc

/// Drops many jobs with one flush for each group of them: all of a group are written in `tmp/`, made durable together,
/// and moved to `new/`. One group is moved while the next one is written. If the process dies, at most two groups
/// remain in `tmp/`, which `clean` removes.
package final class GroupDrop {
  /// Each flush writes nearly all blocks of `new/` once more, so few large groups write less than many small ones.
  private static let standardSize = 16_384

  private let groupSize: Int
  private let spool: Spool
  private let isForeign: Bool
  private let confirm: @Sendable () throws(SpoolError) -> Void
  /// nil where it cannot be made durable as a whole: each job is flushed by itself.
  private let fileSystem: FileSystem?
  private let objector: WorkerName?
  /// The end of the names in `tmp/`, before a number: cannot be guessed.
  private let suffix: [UInt8]
  private var time = timespec()
  /// The jobs so far. Two may have one name.
  private var count = 0
  /// Whole jobs in `tmp/`, the names that they are to have in `new/`, and whether they go to `urgent/` instead, if this
  /// user may drop there.
  private var group: [(path: Path, name: JobName, isUrgent: Bool)] = []
  /// The group before it, on its way to `new/`.
  private var entering: Answer<Result<Void, SpoolError>>?

  /// - Parameter groupSize: the number of jobs that share a flush; nil for the usual one.
  /// - Parameter flushesEach: flush each job by itself.
  /// - Parameter confirm: called when a group is written; if it throws, the group is not dropped.
  package init(
    _ spool: Spool, groupSize: Int? = nil, flushesEach: Bool = false,
    confirm: @escaping @Sendable () throws(SpoolError) -> Void = {}
  ) throws(SpoolError) {
    (self.spool, self.confirm) = (spool, confirm)
    self.groupSize = groupSize ?? Self.standardSize
    isForeign = try Drops(spool).isForeignDrop()
    objector = try WorkerFiles(spool).objector()
    suffix = Array(":\(spool.scratchOwner).".utf8)
    fileSystem = flushesEach ? nil : try spool.fileSystem()
  }

  /// The name of the job that a file in `tmp/` is to have; nil if it is no file of a group.
  static func target(of file: FileName) -> FileName? {
    guard let colon = file.bytes.lastIndex(of: 0x3A),
      // HOST.PID.TAG and the number.
      file.bytes[colon...].split(separator: 0x2E, omittingEmptySubsequences: false).count == 4
    else { return nil }
    return FileName(Array(file.bytes[..<colon]))
  }

  /// - Throws: ``SpoolError``, perhaps of an earlier job. What is not in `new/` then is not dropped, and leaves
  ///   nothing behind.
  package func drop(_ text: [UInt8], as name: JobName) throws(SpoolError) {
    try undoing { () throws(SpoolError) in
      if let objector { try WorkerFiles.refuse(text, as: name, for: objector) }
      count += 1
      let path = Path(.tmp, FileName(name.fileName.bytes + suffix + Array("\(count)".utf8)))
      let file = try Drops(spool).temporaryDrop(of: text, for: name, at: path, isForeign: isForeign)
      group.append((file.path, name, JobText.saysHighPriority(text)))
      try setTime(of: file)
      if fileSystem == nil { try file.fsync() }
    }
    if group.count >= groupSize { try enter() }
  }

  /// Each job is at least a nanosecond younger than the one before, so that workers, who take the oldest first, know
  /// their order: the kernel's clock for files ticks in milliseconds. Another machine's clock is not known.
  private func setTime(of file: borrowing OwnedFile) throws(SpoolError) {
    guard spool.kind.isLocal else { return }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME_COARSE, &now)
    if (now.tv_sec, now.tv_nsec) <= (time.tv_sec, time.tv_nsec) {
      now = time
      now.tv_nsec += 1
      if now.tv_nsec == 1_000_000_000 { (now.tv_sec, now.tv_nsec) = (now.tv_sec + 1, 0) }
    }
    time = now
    try file.setTimes(to: Int64(now.tv_sec), nanoseconds: now.tv_nsec)
  }

  /// Drops what is left, and makes all of it durable.
  package func finish() throws(SpoolError) {
    try enter()
    try settle()
    if let fileSystem { return try fileSystem.sync() }
    // A user who may only drop cannot open the directory to sync it.
    if isForeign { return try spool.directory.syncFileSystem() }
    try spool.flush(.new).run()
    if try spool.modified(.urgent) != nil { try spool.flush(.urgent).run() }
  }

  /// Begins to move the group to `new/`, after the one before it.
  private func enter() throws(SpoolError) {
    try undoing { () throws(SpoolError) in
      try settle()
      try confirm()
    }
    if group.isEmpty { return }
    let jobs = group
    group = []
    entering = Answer(of: { [spool, isForeign, fileSystem] () throws(SpoolError) in
      try Self.enter(jobs, spool, isForeign: isForeign, after: fileSystem)
    })
  }

  /// Waits until the group before is in `new/`.
  private func settle() throws(SpoolError) { if let before = entering.take() { try before.wait() } }

  /// Removes the files of the group if `body` fails. The group before it is in `new/` then, or its files are removed.
  private func undoing(_ body: () throws(SpoolError) -> Void) throws(SpoolError) {
    do throws(SpoolError) { try body() } catch {
      Self.remove(group.map(\.path), spool)
      group = []
      // The earlier group's error says no less, but the caller gets one only.
      try? settle()
      throw error
    }
  }

  /// Moves the jobs to `new/`, in order, once they are durable.
  /// - Parameter fileSystem: to flush first; nil where the jobs are durable already.
  /// - Throws: ``SpoolError``; nothing is left of the jobs that are not moved.
  private static func enter(
    _ jobs: [(path: Path, name: JobName, isUrgent: Bool)], _ spool: Spool, isForeign: Bool,
    after fileSystem: FileSystem?
  ) throws(SpoolError) {
    var moved = 0
    do throws(SpoolError) {
      try fileSystem?.sync()
      for job in jobs {
        _ = try Drops(spool).enter(
          job.path, as: job.name, into: Directory(forDropsOf: job.isUrgent ? .high : nil), isForeign: isForeign)
        moved += 1
      }
    } catch {
      remove(jobs[moved...].map(\.path), spool)
      throw error
    }
  }

  private static func remove(_ files: [Path], _ spool: Spool) {
    for file in files { try? spool.system.unlink(spool.root, file) }
  }
}
