internal import SystemPackage

/// Drops many jobs with one flush for each group of them: all of a group are written in `tmp/`, made durable together,
/// and moved to `new/`. If the process dies, at most a group remains in `tmp/`, which `clean` removes.
package final class GroupDrop {
  /// A syncfs(2) costs about as much as some hundred jobs.
  static let groupSize = 4096

  private let spool: Spool
  private let isForeign: Bool
  /// nil where syncfs(2) does not report every failed write: each job is flushed by itself.
  private let fileSystem: FileSystem?
  private var group: [(temporary: Path, name: JobName)] = []

  /// - Throws: ``SpoolError``.
  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    isForeign = try spool.isForeignDrop()
    fileSystem = FileSystem.isReliable ? try spool.fileSystem() : nil
  }

  /// - Throws: ``SpoolError``; the jobs of the last group are not dropped then, and nothing is left of them.
  package func drop(_ text: [UInt8], as name: JobName) throws(SpoolError) {
    try undoing { () throws(SpoolError) in
      let file = try spool.temporaryDrop(of: text, as: name, isForeign: isForeign)
      group.append((file.path, name))
      if fileSystem == nil { try file.fsync() }
    }
    if group.count >= Self.groupSize { try enter() }
  }

  /// Drops what is left, and makes all of it durable.
  /// - Throws: ``SpoolError``.
  package func finish() throws(SpoolError) {
    try enter()
    if let fileSystem { return try fileSystem.sync() }
    // A user who may only drop cannot open the directory to sync it.
    if isForeign { try spool.directory.syncFileSystem() } else { try spool.flush(.new).run() }
  }

  private func enter() throws(SpoolError) {
    if group.isEmpty { return }
    try undoing { () throws(SpoolError) in
      try fileSystem?.sync()
      // Oldest first; from the end of the array, where removing is cheap.
      group.reverse()
      while let (temporary, name) = group.last {
        _ = try spool.enter(temporary, as: name, isForeign: isForeign)
        group.removeLast()
      }
    }
  }

  /// Removes the files of the group if `body` fails.
  private func undoing(_ body: () throws(SpoolError) -> Void) throws(SpoolError) {
    do throws(SpoolError) { try body() } catch {
      for (temporary, _) in group { try? spool.system.unlink(spool.root, temporary) }
      group = []
      throw error
    }
  }
}
